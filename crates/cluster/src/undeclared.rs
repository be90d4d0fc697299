//! Fields that a custom resource's definition does not declare. Server-side apply refuses an object that has one, where
//! a create would drop it: examples that operators ship have such fields now and then.

use serde_json::Value;

use crate::error::{ClusterError, FieldError};

/// The server's words about one such field.
const WORDS: &str = "field not declared in schema";

/// Whether an answer is about such fields.
pub(crate) fn is_about(text: &str) -> bool {
    text.contains(WORDS)
}

/// The fields that the server's message names, in its two shapes: one on the line itself, or each on a line of its own.
pub(crate) fn causes(message: &str) -> Vec<FieldError> {
    let named = message.lines().filter_map(|line| line.trim_end().strip_suffix(WORDS)?.trim_end().strip_suffix(':'));
    let field = |text: &str| text.rsplit(' ').next().unwrap_or_default().trim_start_matches('.').to_owned();
    named.map(|text| FieldError { field: field(text), message: WORDS.to_owned() }).collect()
}

/// Takes the fields that are not declared out of an object, unless `wanted` names one of them. The fields that went; none
/// when the error is about something else, or about a field that cannot be left out.
pub(crate) fn leave_out(object: &mut Value, error: &ClusterError, wanted: Option<&Value>) -> Vec<String> {
    let ClusterError::Invalid { causes, .. } = error else { return Vec::new() };
    let mut lighter = object.clone();
    for cause in causes {
        let pointer = format!("/{}", cause.field.replace('.', "/"));
        let is_wanted = wanted.is_some_and(|wanted| wanted.pointer(&pointer).is_some());
        if cause.message != WORDS || is_wanted || !remove(&mut lighter, &pointer) {
            return Vec::new();
        }
    }
    *object = lighter;
    causes.iter().map(|cause| cause.field.clone()).collect()
}

fn remove(object: &mut Value, pointer: &str) -> bool {
    let Some((parent, field)) = pointer.rsplit_once('/') else { return false };
    let parent = object.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.is_some_and(|parent| parent.remove(field).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolbox_engine::ObjectRef;

    use super::*;

    fn error(message: &str) -> ClusterError {
        let body = json!({"kind": "Status", "code": 500, "message": message}).to_string();
        ClusterError::of_answer(
            500,
            body.as_bytes(),
            "apply",
            &ObjectRef::new("nvidia.com/v1", "ClusterPolicy", None, "x"),
        )
    }

    #[test]
    fn both_shapes_of_the_answer_name_their_fields() {
        let one = "failed to create typed patch object (/x; nvidia.com/v1, Kind=ClusterPolicy): .spec.operator.deployGFD: field not declared in schema";
        let several = "failed to create typed patch object (/x; nvidia.com/v1, Kind=ClusterPolicy): errors:\n  .spec.dcgm.tolerations: field not declared in schema\n  .spec.operator.deployGFD: field not declared in schema";
        let policy = json!({"spec": {"dcgm": {"enabled": true, "tolerations": []}, "operator": {"deployGFD": true}}});
        let mut object = policy.clone();
        assert_eq!(leave_out(&mut object, &error(one), None), ["spec.operator.deployGFD"]);
        assert_eq!(leave_out(&mut policy.clone(), &error(several), None).len(), 2);
        assert_eq!(object, json!({"spec": {"dcgm": {"enabled": true, "tolerations": []}, "operator": {}}}));
    }

    #[test]
    fn what_was_asked_for_is_not_left_out() {
        let one = "failed to create typed patch object (/x; nvidia.com/v1, Kind=ClusterPolicy): .spec.operator.typo: field not declared in schema";
        let mut object = json!({"spec": {"operator": {"typo": true}}});
        let asked = object.clone();
        assert!(leave_out(&mut object, &error(one), Some(&asked)).is_empty());
        assert_eq!(object, asked);
        assert_eq!(error(one).to_string(), "is refused: spec.operator.typo: field not declared in schema");
        assert!(leave_out(&mut object, &error("etcd is out of space"), None).is_empty());
    }
}
