//! Which kind is meant: short names as kubectl has them, but only ours, because the same short name belongs to several
//! groups.

use toolbox_cluster::{Cluster, kinds};
use toolbox_engine::Why;
use toolbox_engine::plan::Kind;

use crate::cli::wrong_flag;

/// kubectl's short names of the kinds we know.
const SHORT: &[(&str, &str)] = &[
    ("po", "pods"),
    ("deploy", "deployments"),
    ("ds", "daemonsets"),
    ("rs", "replicasets"),
    ("sts", "statefulsets"),
    ("ns", "namespaces"),
    ("no", "nodes"),
    ("cm", "configmaps"),
    ("svc", "services"),
    ("sa", "serviceaccounts"),
    ("crd", "customresourcedefinitions"),
    ("csv", "clusterserviceversions"),
    ("sub", "subscriptions"),
    ("ip", "installplans"),
    ("og", "operatorgroups"),
    ("catsrc", "catalogsources"),
    ("nfd", "nodefeaturediscoveries"),
];

/// An object as it was named.
enum Named<'a> {
    Known(Kind, &'a str),
    /// API version, kind and name; the cluster says whether there is such a kind.
    Other(&'a str, &'a str, &'a str),
}

/// Whether the words can name an object, as far as that can be said without a cluster.
pub(crate) fn check(text: &str) -> Result<(), Why> {
    named(text).map(|_| ())
}

/// Takes `pod/x`, `Pod/x`, `pods/x`, `po/x`, `clusterpolicies.nvidia.com/x` or `batch/v1/CronJob/x`.
pub(super) async fn parse(cluster: &Cluster, text: &str) -> Result<(Kind, String), Why> {
    match named(text)? {
        Named::Known(kind, name) => Ok((kind, name.to_owned())),
        Named::Other(api_version, kind, name) => Ok((cluster.kind(api_version, kind).await?, name.to_owned())),
    }
}

fn named(text: &str) -> Result<Named<'_>, Why> {
    let wrong = |text: String| {
        wrong_flag("KIND/NAME", text, "write it as pod/NAME, or with its API version as batch/v1/CronJob/NAME")
    };
    let Some((kind, name)) = text.rsplit_once('/').filter(|(kind, name)| !kind.is_empty() && !name.is_empty()) else {
        return Err(wrong(format!("`{text}` names no object")));
    };
    if let Some((api_version, kind)) = kind.rsplit_once('/') {
        // `pod/x/y` has no API version in front.
        if known(api_version).is_some() {
            return Err(wrong(format!("`{text}` names more than one object")));
        }
        return Ok(Named::Other(api_version, kind, name));
    }
    if let Some(kind) = known(kind) {
        return Ok(Named::Known(kind, name));
    }
    let mut all: Vec<String> = kinds::ALL.iter().map(|kind| kind.kind.to_lowercase()).collect();
    all.sort();
    Err(wrong(format!("`{kind}` is no kind that is known here; known are {}", all.join(", "))))
}

fn known(word: &str) -> Option<Kind> {
    let word = word.to_lowercase();
    let word = SHORT.iter().find(|(short, _)| *short == word).map_or(word.as_str(), |(_, plural)| plural);
    let matches = |kind: &&Kind| kind.kind.to_lowercase() == word || kind.plural == word || kind.full_name() == word;
    kinds::ALL.iter().find(matches).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_every_name_kubectl_takes() {
        for word in ["pod", "Pod", "pods", "po"] {
            assert_eq!(known(word), Some(kinds::POD), "{word}");
        }
        assert_eq!(known("csv"), Some(kinds::CSV));
        assert_eq!(known("clusterpolicies.nvidia.com"), Some(kinds::CLUSTER_POLICY));
        assert_eq!(known("machineset"), Some(kinds::MACHINE_SET));
        assert_eq!(known("cronjob"), None);
        for (_, plural) in SHORT {
            assert!(known(plural).is_some(), "{plural}");
        }
    }
}
