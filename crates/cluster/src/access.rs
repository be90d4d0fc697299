//! What the account may not do of what a plan will do, asked before anything changes.

use std::collections::BTreeSet;
use std::fmt;

use bytes::Bytes;
use futures::future::try_join_all;
use http::Method;
use serde_json::json;
use toolbox_engine::plan::{Effect, Name};
use toolbox_engine::{Cause, Exit, FailureVerdict, ObjectRef, Why};

use crate::cluster::{Cluster, parse};
use crate::error::ClusterError;
use crate::transport::Call;

/// A right that is needed and not there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// The API's verb: `create`.
    pub verb: String,
    /// The resource with its group, and the subresource: `pods/log`, `subscriptions.operators.coreos.com`.
    pub resource: String,
    /// Where; `None` is every namespace, or a cluster-scoped kind.
    pub namespace: Option<String>,
    /// The one object meant, when it is known.
    pub name: Option<String>,
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in {namespace}"),
            None => Ok(()),
        }
    }
}

/// One right to ask for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    verb: &'static str,
    group: String,
    version: String,
    plural: String,
    subresource: Option<&'static str>,
    namespace: Option<String>,
    name: Option<String>,
}

impl Right {
    fn gap(&self) -> Gap {
        let mut resource = self.plural.clone();
        if !self.group.is_empty() {
            resource = format!("{resource}.{}", self.group);
        }
        if let Some(subresource) = self.subresource {
            resource = format!("{resource}/{subresource}");
        }
        Gap { verb: self.verb.to_owned(), resource, namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

fn rights(effects: &[Effect]) -> BTreeSet<Right> {
    let each = effects.iter().flat_map(|effect| {
        effect.act.api_verbs().iter().map(move |verb| Right {
            verb,
            group: effect.kind.group.to_string(),
            version: effect.kind.version.to_string(),
            plural: effect.kind.plural.to_string(),
            subresource: effect.subresource,
            namespace: effect.namespace.clone().filter(|_| effect.kind.namespaced),
            name: match &effect.name {
                // Nobody can be allowed to create one name only.
                Name::Is(name) if *verb != "create" && !name.is_empty() => Some(name.clone()),
                _ => None,
            },
        })
    });
    each.collect()
}

/// Causes about rights.
#[derive(Clone, Debug)]
struct MissingRights {
    gaps: Vec<Gap>,
}

impl Cause for MissingRights {
    fn code(&self) -> &'static str {
        "missing-rights"
    }
    fn text(&self) -> String {
        match &self.gaps[..] {
            [gap] => format!("may not {gap}"),
            gaps => format!("{} rights are missing", gaps.len()),
        }
    }
    fn next(&self) -> String {
        "use an account that has these rights, or ask for them; nothing was changed".to_owned()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }
    fn exit(&self) -> Exit {
        Exit::Access
    }
}

impl Cluster {
    /// The rights that these effects need and the account does not have, in order.
    pub async fn access_gaps(&self, effects: &[Effect]) -> Result<Vec<Gap>, ClusterError> {
        let rights: Vec<Right> = rights(effects).into_iter().collect();
        let mut gaps = Vec::new();
        // A few at a time: enough to be quick, too few to be throttled.
        for some in rights.chunks(16) {
            let allowed = try_join_all(some.iter().map(|right| self.is_allowed(right))).await?;
            let missing = some.iter().zip(allowed).filter(|(_, allowed)| !allowed);
            gaps.extend(missing.map(|(right, _)| right.gap()));
        }
        Ok(gaps)
    }

    /// All gaps as one cause (exit code 4), or `None` when there are none.
    pub fn access_why(&self, gaps: &[Gap]) -> Option<Why> {
        if gaps.is_empty() {
            return None;
        }
        let user = self.info().user.clone();
        let object = ObjectRef::thing("user", user.unwrap_or_else(|| "current".to_owned()));
        let cause = MissingRights { gaps: gaps.to_vec() };
        let list: Vec<String> = gaps.iter().map(ToString::to_string).collect();
        Some(Why::new(object, &cause).with("missing rights", list.join("\n")))
    }

    async fn is_allowed(&self, right: &Right) -> Result<bool, ClusterError> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "verb": right.verb,
                "group": right.group,
                "version": right.version,
                "resource": right.plural,
                "subresource": right.subresource.unwrap_or_default(),
                "namespace": right.namespace.as_deref().unwrap_or_default(),
                "name": right.name.as_deref().unwrap_or_default(),
            }},
        });
        let object = ObjectRef::thing("access review", right.gap().to_string());
        let call = Call {
            verb: "access-review",
            method: Method::POST,
            path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(),
            content_type: Some("application/json"),
            body: Bytes::from(review.to_string()),
            object: object.clone(),
            // It leaves nothing behind.
            repeatable: true,
        };
        match self.shared.transport.call(&call).await {
            Ok(answer) => {
                let answer = parse(&answer.body, &object)?;
                Ok(answer["status"]["allowed"].as_bool().unwrap_or_default())
            }
            // A server that cannot be asked will say no when it is time.
            Err(error) if error.is_absent() => Ok(true),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use toolbox_engine::plan::Act;

    #[test]
    fn an_apply_needs_create_without_a_name_and_get_and_patch_with_it() {
        let effects = [
            Effect::on(Act::Apply, &kinds::SUBSCRIPTION, Some("ns"), "nfd"),
            Effect::on(Act::Apply, &kinds::SUBSCRIPTION, Some("ns"), "nfd"),
            Effect::any(Act::Logs, &kinds::POD, Some("ns")),
        ];
        let texts: Vec<String> = rights(&effects).iter().map(|right| right.gap().to_string()).collect();
        assert_eq!(
            texts,
            [
                "create subscriptions.operators.coreos.com in ns",
                "get pods/log in ns",
                "get subscriptions.operators.coreos.com nfd in ns",
                "patch subscriptions.operators.coreos.com nfd in ns",
            ]
        );
    }
}
