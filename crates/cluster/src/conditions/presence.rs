//! There, not there yet, gone, replaced.

use toolbox_engine::{Cause, FailureVerdict, ObjectRef, Verdict, Why};

use crate::object::{Condition, Object};

/// Why an object that was there cannot be judged any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PresenceCause {
    /// It was there and is not any more.
    Disappeared,
    /// Another object has its name now.
    Replaced,
}

impl Cause for PresenceCause {
    fn code(&self) -> &'static str {
        match self {
            PresenceCause::Disappeared => "disappeared",
            PresenceCause::Replaced => "replaced",
        }
    }
    fn text(&self) -> String {
        match self {
            PresenceCause::Disappeared => "disappeared while it was waited for".to_owned(),
            PresenceCause::Replaced => "was replaced by another object of the same name".to_owned(),
        }
    }
    fn next(&self) -> String {
        "find out who deleted it, and run the command again".to_owned()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Infrastructure
    }
}

/// The object, when it is there and is the one meant. Not there is pending, unless the reference has a uid: then it was
/// there, and has gone or been replaced.
pub fn present<'a>(found: Option<&'a Object>, meant: &ObjectRef) -> Verdict<&'a Object> {
    match (found, meant.uid.as_deref()) {
        (None, None) => Verdict::Pending(Why::waiting(meant.clone(), "not-there-yet", "has not appeared")),
        (None, Some(_)) => Verdict::Failed(Why::new(meant.clone(), &PresenceCause::Disappeared)),
        (Some(found), Some(uid)) if found.uid() != uid => {
            Verdict::Failed(Why::new(meant.clone(), &PresenceCause::Replaced))
        }
        (Some(found), _) => Verdict::Done(found),
    }
}

/// Whether the object is gone, or has given its name to another. Says what holds it while it is there.
pub fn gone(objects: &[Object], target: &ObjectRef) -> Verdict<()> {
    let same = |object: &&Object| {
        object.name() == target.name
            && (object.kind().is_empty() || object.kind() == target.kind)
            && object.namespace() == target.namespace.as_deref()
            && target.uid.as_deref().is_none_or(|uid| uid == object.uid())
    };
    let Some(found) = objects.iter().find(same) else {
        return Verdict::Done(());
    };
    if !found.is_deleting() {
        let text = "is still there, and its deletion was not asked for";
        return Verdict::Pending(Why::waiting(found.refer(), "not-deleted", text));
    }
    let holds = holding(found);
    if holds.is_empty() {
        return Verdict::Pending(Why::waiting(found.refer(), "being-deleted", "is being deleted"));
    }
    let text = format!("is being deleted and is held by {}", holds.join("; "));
    Verdict::Pending(Why::waiting(found.refer(), "held", text).or_else(
        FailureVerdict::Infrastructure,
        "find what should take the finalizer off (an operator that is gone cannot), and take it off by hand only when nothing else will",
    ))
}

/// What keeps an object that is being deleted from going: its finalizers, and what its conditions say remains.
pub fn holding(object: &Object) -> Vec<String> {
    let mut holds = Vec::new();
    let finalizers = object.finalizers();
    if !finalizers.is_empty() {
        holds.push(format!("its finalizers {}", finalizers.join(", ")));
    }
    if object.kind() == "Namespace" {
        const REMAINING: [&str; 5] = [
            "NamespaceContentRemaining",
            "NamespaceFinalizersRemaining",
            "NamespaceDeletionDiscoveryFailure",
            "NamespaceDeletionGroupVersionParsingFailure",
            "NamespaceDeletionContentFailure",
        ];
        let said = REMAINING.iter().filter_map(|kind| object.condition(kind));
        holds.extend(said.filter(|it| it.is_true() && !it.message.is_empty()).map(|it| it.message.to_owned()));
    }
    if object.kind() == "CustomResourceDefinition"
        && let Some(condition) = object.condition("Terminating").filter(Condition::is_true)
        && !condition.message.is_empty()
    {
        holds.push(condition.message.to_owned());
    }
    holds
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy(uid: &str) -> Object {
        Object::new(json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {
            "name": "gpu-cluster-policy", "uid": uid, "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["example.test/cleanup"]}}))
    }

    #[test]
    fn a_finalizer_that_holds_an_object_is_named() {
        let Verdict::Pending(why) = gone(&[policy("1")], &policy("1").refer()) else { panic!() };
        assert_eq!(
            why.to_string(),
            "ClusterPolicy/gpu-cluster-policy: is being deleted and is held by its finalizers example.test/cleanup"
        );
        assert!(!why.next.is_empty());
    }

    #[test]
    fn a_namespace_says_what_remains_in_it() {
        let namespace = Object::new(json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "ns", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"conditions": [
                {"type": "NamespaceContentRemaining", "status": "True",
                 "message": "Some resources are remaining: clusterpolicies.nvidia.com has 1 resource instances"},
                {"type": "NamespaceDeletionContentFailure", "status": "False", "message": "All content successfully deleted"}]}}));
        let Verdict::Pending(why) = gone(std::slice::from_ref(&namespace), &namespace.refer()) else { panic!() };
        assert!(why.cause.contains("clusterpolicies.nvidia.com has 1"), "{why}");
        assert!(!why.cause.contains("successfully"));
    }

    #[test]
    fn another_object_of_the_name_means_that_the_old_one_is_gone() {
        assert_eq!(gone(&[policy("2")], &policy("1").refer()), Verdict::Done(()));
        assert_eq!(gone(&[], &policy("1").refer()), Verdict::Done(()));
    }

    #[test]
    fn absence_is_pending_until_the_object_was_seen() {
        let meant = ObjectRef::new("v1", "Pod", Some("ns"), "burn");
        let Verdict::Pending(why) = present(None, &meant) else { panic!() };
        assert_eq!(why.cause, "has not appeared");
        assert!(
            matches!(present(None, &meant.clone().with_uid("1")), Verdict::Failed(why) if why.code == "disappeared")
        );
        assert!(
            matches!(present(Some(&policy("2")), &policy("1").refer()), Verdict::Failed(why) if why.code == "replaced")
        );
    }
}
