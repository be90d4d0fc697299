//! What objects say about themselves, judged: done, pending because, failed because.

use serde_json::Value;
use toolbox_engine::{ObjectRef, Verdict, Why};

use crate::object::Object;

/// Whether the object is gone, or has given its name to another. Says what holds it while it is there.
pub fn gone(objects: &[Object], target: &ObjectRef) -> Verdict<()> {
    let same = |object: &&Object| {
        object.name() == target.name
            && object.namespace() == target.namespace.as_deref()
            && target.uid.as_deref().is_none_or(|uid| uid == object.uid())
    };
    let Some(found) = objects.iter().find(same) else {
        return Verdict::Done(());
    };
    let text = match (found.is_deleting(), found.finalizers()) {
        (false, _) => "is still there and nobody has asked for its deletion".to_owned(),
        (true, finalizers) if finalizers.is_empty() => "is being deleted".to_owned(),
        (true, finalizers) => format!("is being deleted and waits for its finalizers {}", finalizers.join(", ")),
    };
    Verdict::Pending(Why::waiting(found.refer(), "being-deleted", text))
}

/// Whether one of these definitions is established and serves a version.
pub(crate) fn crd_serves(definitions: &[Object], version: &str) -> bool {
    definitions.iter().any(|definition| {
        let established = definition.condition("Established");
        let serves = |served: &Value| served["name"] == version && served["served"] == true;
        established.is_some_and(|condition| condition.is_true()) && definition.list("/spec/versions").iter().any(serves)
    })
}
