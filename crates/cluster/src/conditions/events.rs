//! Events: which are about an object, when they happened, what they warn of.

use jiff::Timestamp;
use toolbox_engine::ObjectRef;
use toolbox_engine::why::Evidence;

use crate::object::Object;

/// When an event last happened, whichever of its times is filled in.
pub fn event_time(event: &Object) -> Option<Timestamp> {
    let times = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/deprecatedLastTimestamp",
        "/eventTime",
        "/firstTimestamp",
        "/deprecatedFirstTimestamp",
        "/metadata/creationTimestamp",
    ];
    times.iter().find_map(|at| event.text(at)?.parse().ok())
}

/// What the event says, in either shape of the API.
pub fn event_message(event: &Object) -> &str {
    event.text("/message").or_else(|| event.text("/note")).unwrap_or_default()
}

/// How often it happened.
pub fn event_count(event: &Object) -> i64 {
    let counts = ["/series/count", "/count", "/deprecatedCount"];
    counts.iter().filter_map(|at| event.number(at)).max().unwrap_or(1).max(1)
}

/// Whether an event is about this object, in this life of it when its uid is known.
pub fn is_about(event: &Object, object: &ObjectRef) -> bool {
    ["/involvedObject", "/regarding"].iter().any(|at| {
        let text = |key: &str| event.text(&format!("{at}/{key}"));
        let same_life = match (text("uid"), &object.uid) {
            (Some(uid), Some(meant)) if !uid.is_empty() => uid == meant,
            _ => true,
        };
        text("name") == Some(&object.name)
            && text("kind") == Some(&object.kind)
            && text("namespace").filter(|n| !n.is_empty()) == object.namespace.as_deref()
            && same_life
    })
}

/// Events in the order in which they happened; those without any time come first.
pub fn in_order(events: &[Object]) -> Vec<&Object> {
    let mut events: Vec<&Object> = events.iter().collect();
    events.sort_by_key(|event| event_time(event));
    events
}

/// The last warnings about an object, newest first, as evidence.
pub fn warnings_about(events: &[Object], object: &ObjectRef, at_most: usize) -> Vec<Evidence> {
    let events = in_order(events).into_iter().rev();
    events
        .filter(|event| event.text("/type") == Some("Warning") && is_about(event, object))
        .take(at_most)
        .map(|event| Evidence {
            label: match event_time(event) {
                Some(time) => format!("event at {}", time.strftime("%H:%M:%SZ")),
                None => "event".to_owned(),
            },
            text: format!("{}: {}", event.text("/reason").unwrap_or_default(), event_message(event)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_event_has_a_time_and_its_place() {
        let about = json!({"kind": "Pod", "name": "p", "namespace": "ns"});
        let events = [
            Object::new(
                json!({"metadata": {"name": "c"}, "reason": "Started", "lastTimestamp": "2026-01-01T00:00:09Z", "eventTime": null, "involvedObject": about}),
            ),
            Object::new(
                json!({"metadata": {"name": "a"}, "reason": "Scheduled", "eventTime": "2026-01-01T00:00:01.000000Z", "lastTimestamp": null, "involvedObject": about}),
            ),
            Object::new(
                json!({"metadata": {"name": "b"}, "reason": "FailedScheduling", "type": "Warning", "message": "0/3 nodes",
                "deprecatedLastTimestamp": "2026-01-01T00:00:05Z", "eventTime": null, "regarding": about}),
            ),
        ];
        let order: Vec<&str> = in_order(&events).iter().filter_map(|event| event.text("/reason")).collect();
        assert_eq!(order, ["Scheduled", "FailedScheduling", "Started"]);
        let pod = ObjectRef::new("v1", "Pod", Some("ns"), "p");
        let warnings = warnings_about(&events, &pod, 5);
        assert_eq!(warnings[0].label, "event at 00:00:05Z");
        assert_eq!(warnings[0].text, "FailedScheduling: 0/3 nodes");
    }

    #[test]
    fn events_of_an_earlier_pod_of_the_name_are_not_about_this_one() {
        let event =
            Object::new(json!({"involvedObject": {"kind": "Pod", "name": "p", "namespace": "ns", "uid": "old"}}));
        let pod = ObjectRef::new("v1", "Pod", Some("ns"), "p");
        assert!(is_about(&event, &pod));
        assert!(!is_about(&event, &pod.with_uid("new")));
    }
}
