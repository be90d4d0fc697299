//! From what was asked for and what the catalog offers to one version, one namespace and one scope, before anything is
//! changed.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::{GLOBAL_NAMESPACE, InstallModes, OlmCause, Package, Published, version_of};

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// A channel; the package's default when absent.
    pub channel: Option<String>,
    /// A version, or `latest`; the channel's newest when absent.
    pub version: Option<String>,
}

impl Wish {
    /// The version, when a particular one is asked for.
    pub fn exact(&self) -> Option<&str> {
        self.version
            .as_deref()
            .filter(|version| *version != "latest")
            .map(|version| version.strip_prefix('v').unwrap_or(version))
    }
}

/// The version to be installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// The channel to subscribe to.
    pub channel: String,
    /// The version.
    pub published: Published,
    /// Its install modes, or those of the nearest version that the catalog describes.
    pub modes: InstallModes,
    /// The namespace its bundle suggests.
    pub suggested_namespace: Option<String>,
    /// Whether it requires other operators' APIs.
    pub requires_others: bool,
    /// The CSVs of the channel that are older, by which an upgrade may lead; `None` where the catalog does not list them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub older: Option<Vec<String>>,
    /// What was chosen from what, in words.
    pub because: String,
}

impl Chosen {
    /// Whether an upgrade to it may lead by `csv`: an older version, and one of the channel where that is known.
    pub fn leads_by(&self, csv: &str) -> bool {
        compare_versions(&version_of(csv), &self.published.version).is_lt()
            && self.older.as_ref().is_none_or(|older| older.iter().any(|one| one == csv))
    }
}

/// Over which namespaces an operator watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The one it runs in.
    Own,
    /// Every one.
    AllNamespaces,
}

/// Where an operator goes, and over what it watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The namespace.
    pub namespace: String,
    /// The scope its group is to have.
    pub scope: Scope,
    /// Where the namespace comes from, in words.
    pub because: String,
}

/// Finds the version asked for, or says what there is.
pub fn choose(package: &Package, wish: &Wish) -> Result<Chosen, OlmCause> {
    let unknown_channel =
        |channel: &str| OlmCause::UnknownChannel { channel: channel.to_owned(), offers: package.offers() };
    if let Some(name) = &wish.channel
        && package.channel(name).is_none()
    {
        return Err(unknown_channel(name));
    }
    let default = package.default_channel.as_deref();
    let named = wish.channel.as_deref().or(default);
    let named_channel = named.and_then(|name| package.channel(name));
    let Some(version) = wish.exact() else {
        let channel = named_channel.ok_or_else(|| unknown_channel(named.unwrap_or_default()))?;
        let because = format!(
            "{} is the newest in {} channel `{}`",
            channel.head.published.version,
            if wish.channel.is_some() { "the asked" } else { "the default" },
            channel.name
        );
        return Ok(chosen(package, channel, channel.head.published.clone(), because));
    };
    let candidates = candidates(package, wish, default);
    for channel in &candidates {
        if let Some(published) = channel.find(version) {
            let because = format!("{version} is in channel `{}`", channel.name);
            return Ok(chosen(package, channel, published.clone(), because));
        }
    }
    // Where the package server lists no versions, only OLM knows; the Subscription's conditions will tell.
    let unlisted = named_channel.filter(|channel| channel.entries.is_none());
    if let Some(channel) = unlisted {
        let csv = channel.head.published.csv.replace(&channel.head.published.version, version);
        let published = Published { csv, version: version.to_owned() };
        let because = format!(
            "the catalog does not list the versions in channel `{}`, so OLM will tell whether {version} is there",
            channel.name
        );
        return Ok(chosen(package, channel, published, because));
    }
    Err(OlmCause::UnknownVersion {
        version: version.to_owned(),
        channel: wish.channel.clone(),
        offers: package.offers(),
    })
}

/// The channels a version is looked for in: the one asked for; otherwise the default one, those that end with the
/// version, the others.
fn candidates<'a>(package: &'a Package, wish: &Wish, default: Option<&str>) -> Vec<&'a super::Channel> {
    if let Some(name) = &wish.channel {
        return package.channel(name).into_iter().collect();
    }
    let version = wish.exact().unwrap_or_default();
    let mut channels: Vec<_> = package.channels.iter().collect();
    channels.sort_by_key(|channel| (Some(channel.name.as_str()) != default, channel.head.published.version != version));
    channels
}

fn chosen(package: &Package, channel: &super::Channel, published: Published, mut because: String) -> Chosen {
    let is_older = |entry: &&Published| compare_versions(&entry.version, &published.version).is_lt();
    let older = |entries: &Vec<Published>| entries.iter().filter(is_older).map(|entry| entry.csv.clone()).collect();
    let older = channel.entries.as_ref().map(older);
    let described = package.describe(&published);
    if let Some((head, false)) = described {
        because = format!(
            "{because}; the catalog describes {} and not it, so its scope is taken from there",
            head.published.csv
        );
    }
    Chosen {
        channel: channel.name.clone(),
        published,
        modes: described.map(|(head, _)| head.modes).unwrap_or_default(),
        suggested_namespace: described.and_then(|(head, _)| head.suggested_namespace.clone()),
        requires_others: described.is_some_and(|(head, _)| head.requires_others),
        older,
        because,
    }
}

/// Namespace and scope: what was asked for, else what the bundle suggests, else the global namespace for a version that
/// watches everything, else `fallback`.
pub fn place(chosen: &Chosen, asked: Option<&str>, fallback: &str) -> Result<Placement, OlmCause> {
    let modes = chosen.modes;
    let (namespace, because) = match (asked, chosen.suggested_namespace.as_deref()) {
        (Some(asked), _) => (asked, "asked for"),
        (None, Some(suggested)) => (suggested, "suggested by the bundle"),
        (None, None) if modes.all_namespaces => {
            (GLOBAL_NAMESPACE, "the bundle suggests none and watches every namespace")
        }
        (None, None) => (fallback, "the bundle suggests none"),
    };
    let no_scope = |needed: &str| OlmCause::NoFittingScope {
        csv: chosen.published.csv.clone(),
        modes: modes.to_string(),
        needed: needed.to_owned(),
    };
    let scope = if namespace == GLOBAL_NAMESPACE {
        if !modes.all_namespaces {
            return Err(no_scope("the group of `openshift-operators` is for every namespace"));
        }
        Scope::AllNamespaces
    } else if modes.own_namespace {
        Scope::Own
    } else if modes.all_namespaces {
        Scope::AllNamespaces
    } else {
        return Err(no_scope("neither its own namespace nor every namespace is among them"));
    };
    Ok(Placement { namespace: namespace.to_owned(), scope, because: because.to_owned() })
}

/// Orders versions as people do: numbers by value, a pre-release (`1.9.0-beta`) before its release.
pub(super) fn compare_versions(a: &str, b: &str) -> Ordering {
    let split = |version: &str| -> (Vec<u64>, Option<String>) {
        let version = version.strip_prefix('v').unwrap_or(version);
        let version = version.split('+').next().unwrap_or(version);
        let (numbers, pre) = match version.split_once('-') {
            Some((numbers, pre)) => (numbers, Some(pre.to_owned())),
            None => (version, None),
        };
        let numbers = numbers.split('.').map(|part| part.parse().unwrap_or(0)).collect();
        (numbers, pre)
    };
    let ((a, a_pre), (b, b_pre)) = (split(a), split(b));
    a.cmp(&b).then_with(|| match (a_pre, b_pre) {
        (None, None) => Ordering::Equal,
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            _ => a.cmp(&b),
        },
    })
}
