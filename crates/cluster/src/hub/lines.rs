//! Cuts a watch's body into events.

use serde_json::Value;

/// Bytes that came, up to a line that is not complete yet.
#[derive(Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

/// One event of a watch.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    /// An object is there, in this state.
    Put(Value),
    /// An object went; its last state.
    Remove(Value),
    /// Nothing happened up to this version.
    Bookmark(String),
    /// The server ends the watch: the HTTP status it means, and its words.
    Error(u16, String),
    /// Something that is no event.
    Garbage,
}

impl Lines {
    /// Takes more bytes and gives the events that are complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        let mut bytes = bytes;
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (line, after) = bytes.split_at(end);
            bytes = &after[1..];
            if self.rest.is_empty() {
                events.extend(event(line));
            } else {
                self.rest.extend_from_slice(line);
                events.extend(event(&std::mem::take(&mut self.rest)));
            }
        }
        self.rest.extend_from_slice(bytes);
        events
    }
}

fn event(line: &[u8]) -> Option<Event> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let Ok(Value::Object(mut map)) = serde_json::from_slice::<Value>(line) else {
        return Some(Event::Garbage);
    };
    let object = map.remove("object").unwrap_or(Value::Null);
    Some(match map.get("type").and_then(Value::as_str) {
        Some("ADDED" | "MODIFIED") => Event::Put(object),
        Some("DELETED") => Event::Remove(object),
        Some("BOOKMARK") => match object["metadata"]["resourceVersion"].as_str() {
            Some(version) => Event::Bookmark(version.to_owned()),
            None => Event::Garbage,
        },
        Some("ERROR") => Event::Error(
            object["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap_or(500),
            object["message"].as_str().unwrap_or_default().to_owned(),
        ),
        _ => Event::Garbage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_cut_anywhere_arrive_whole_and_once() {
        let put = r#"{"type":"ADDED","object":{"a":1}}"#;
        let gone = r#"{"type":"ERROR","object":{"code":410,"message":"too old"}}"#;
        let text = format!("{put}\n\n{gone}\n");
        for cut in 0..text.len() {
            let mut lines = Lines::default();
            let mut events = lines.push(&text.as_bytes()[..cut]);
            events.extend(lines.push(&text.as_bytes()[cut..]));
            assert_eq!(events, [Event::Put(json!({"a": 1})), Event::Error(410, "too old".to_owned())]);
        }
    }

    #[test]
    fn what_is_no_event_is_said_to_be_none() {
        assert_eq!(Lines::default().push(b"<html>\n"), [Event::Garbage]);
    }
}
