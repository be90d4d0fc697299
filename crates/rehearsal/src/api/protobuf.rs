//! Bodies in protobuf, which typed Go clients send for the built-in kinds, read by the recorded types.
//!
//! Answers are always JSON; every such client accepts it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::status::ApiError;
use crate::types::{self, Node};

/// Numbers and switches of these names are sent only when somebody has set them; any other zero says nothing.
const ZERO_COUNTS: [&str; 12] = [
    "activeDeadlineSeconds",
    "automountServiceAccountToken",
    "backoffLimit",
    "completions",
    "expirationSeconds",
    "failedJobsHistoryLimit",
    "gracePeriodSeconds",
    "parallelism",
    "replicas",
    "successfulJobsHistoryLimit",
    "terminationGracePeriodSeconds",
    "ttlSecondsAfterFinished",
];

/// Reads a body: the envelope that says what it is, then the object.
pub(super) fn decode(body: &[u8]) -> Result<Value, ApiError> {
    let malformed = || ApiError::bad_request("the body is not a protobuf object");
    let envelope = body.strip_prefix(b"k8s\0").ok_or_else(malformed)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for (number, value) in fields(envelope).ok_or_else(malformed)? {
        match (number, value) {
            (1, Wire::Slice(inner)) => {
                for (number, value) in fields(inner).ok_or_else(malformed)? {
                    match (number, value) {
                        (1, Wire::Slice(text)) => api_version = lossy(text),
                        (2, Wire::Slice(text)) => kind = lossy(text),
                        _ => {}
                    }
                }
            }
            (2, Wire::Slice(inner)) => raw = inner,
            _ => {}
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let node = types::of_kind(group, version, &kind)
        .ok_or_else(|| ApiError::unsupported_media_type("application/json, application/yaml"))?;
    let mut out = Map::new();
    out.insert("apiVersion".into(), api_version.clone().into());
    out.insert("kind".into(), kind.clone().into());
    out.extend(message(raw, node).ok_or_else(malformed)?);
    Ok(Value::Object(out))
}

enum Wire<'a> {
    Number(u64),
    Slice(&'a [u8]),
}

fn lossy(slice: &[u8]) -> String {
    String::from_utf8_lossy(slice).into_owned()
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// The fields of a message with their numbers, in the order sent.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Wire<'_>)>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let length = match tag & 7 {
            0 => {
                out.push((tag >> 3, Wire::Number(varint(&mut bytes)?)));
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (slice, rest) = bytes.split_at_checked(length)?;
        bytes = rest;
        out.push((tag >> 3, Wire::Slice(slice)));
    }
    Some(out)
}

/// A message of a type, as JSON has it.
fn message(bytes: &[u8], node: Node<'_>) -> Option<Map<String, Value>> {
    let mut out = Map::new();
    read_into(&mut out, bytes, node, types::numbers(node.name())?)?;
    Some(out)
}

fn read_into(out: &mut Map<String, Value>, bytes: &[u8], node: Node<'_>, numbers: &Map<String, Value>) -> Option<()> {
    for (number, value) in fields(bytes)? {
        match (numbers.get(&number.to_string()), value) {
            // What JSON shows as fields of the whole.
            (Some(Value::Object(inner)), Wire::Slice(slice)) => read_into(out, slice, node, inner)?,
            (Some(Value::String(name)), value) => {
                let Some(field) = node.property(name) else { continue };
                if let Some(one) = field_value(name, field, &value)? {
                    add(out, name, one);
                }
            }
            _ => {}
        }
    }
    Some(())
}

/// A repeated field and a map come one item at a time.
fn add(out: &mut Map<String, Value>, name: &str, one: Value) {
    match (out.get_mut(name), one) {
        (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
        (Some(Value::Object(map)), Value::Object(more)) => map.extend(more),
        (_, one) => drop(out.insert(name.to_owned(), one)),
    }
}

/// One field. The inner `None` stands for a value that says nothing.
#[expect(clippy::option_option, reason = "malformed, or nothing said: two different things")]
fn field_value(name: &str, field: Node<'_>, value: &Wire<'_>) -> Option<Option<Value>> {
    Some(match (field.kind(), value) {
        ("array", value) => Some(json!([scalar(field.items()?, value)?])),
        ("object", Wire::Slice(slice)) if field.additional().is_some() => {
            let (mut key, mut held) = (String::new(), Value::Null);
            let inner = field.additional()?;
            for (number, value) in fields(slice)? {
                match (number, value) {
                    (1, Wire::Slice(text)) => key = lossy(text),
                    (2, value) => held = scalar(inner, &value)?,
                    _ => {}
                }
            }
            if held.is_null() && inner.kind() == "string" {
                held = "".into();
            }
            Some(json!({key: held}))
        }
        // Text that is not said is sent as empty text.
        ("string", Wire::Slice([])) => None,
        ("integer" | "boolean", Wire::Number(0)) if !ZERO_COUNTS.contains(&name) => None,
        (_, value) => Some(scalar(field, value)?),
    })
}

fn scalar(node: Node<'_>, value: &Wire<'_>) -> Option<Value> {
    let last = node.last_name();
    Some(match value {
        Wire::Number(number) if node.kind() == "boolean" => json!(*number != 0),
        Wire::Number(number) => json!(number.cast_signed()),
        Wire::Slice(slice) => match (last, node.kind()) {
            ("Time" | "MicroTime", _) => time(slice, last == "MicroTime"),
            ("Quantity", _) => first_slice(slice)?.map_or(Value::Null, |text| lossy(text).into()),
            ("IntOrString", _) => int_or_string(slice)?,
            ("RawExtension" | "JSON" | "FieldsV1", _) => {
                first_slice(slice)?.and_then(|raw| serde_json::from_slice(raw).ok()).unwrap_or(Value::Null)
            }
            (_, "string") if node.text("format") == "byte" => STANDARD.encode(slice).into(),
            (_, "string") => lossy(slice).into(),
            (_, "number") => json!(f64::from_le_bytes((*slice).try_into().ok()?)),
            _ => Value::Object(message(slice, node)?),
        },
    })
}

/// The text or bytes under number 1.
#[expect(clippy::option_option, reason = "malformed, or nothing said: two different things")]
fn first_slice(bytes: &[u8]) -> Option<Option<&[u8]>> {
    let found = fields(bytes)?.into_iter().find_map(|field| match field {
        (1, Wire::Slice(slice)) => Some(slice),
        _ => None,
    });
    Some(found)
}

fn int_or_string(bytes: &[u8]) -> Option<Value> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in fields(bytes)? {
        match field {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(value)) => number = value.cast_signed(),
            (3, Wire::Slice(slice)) => text = lossy(slice),
            _ => {}
        }
    }
    Some(if is_text { text.into() } else { number.into() })
}

/// A moment; one that is not set says nothing.
fn time(bytes: &[u8], micro: bool) -> Value {
    let numbers = fields(bytes).unwrap_or_default();
    let of = |wanted: u64| {
        numbers.iter().find_map(|field| match field {
            (number, Wire::Number(value)) if *number == wanted => Some(value.cast_signed()),
            _ => None,
        })
    };
    let nanos = i32::try_from(of(2).unwrap_or(0)).unwrap_or(0);
    let moment = of(1).and_then(|seconds| Timestamp::new(seconds, nanos).ok());
    moment.map_or(Value::Null, |moment| {
        if micro {
            moment.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into()
        } else {
            super::server::stamp(moment).into()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        out.extend(bytes);
        out
    }

    fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let kind = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), field(1, &kind), field(2, raw)].concat()
    }

    #[test]
    fn a_pods_volume_is_read_as_one_thing() {
        let secret = field(6, &field(1, b"hidden"));
        let volume = [field(1, b"v"), field(2, &secret)].concat();
        let pod = [field(1, &field(1, b"p")), field(2, &field(1, &volume))].concat();
        assert_eq!(
            decode(&envelope("v1", "Pod", &pod)).unwrap(),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"volumes": [
                {"name": "v", "secret": {"secretName": "hidden"}},
            ]}})
        );
    }

    #[test]
    fn a_zero_counts_where_it_was_set() {
        // replicas = 0, minReadySeconds = 0
        let deployment = field(2, &[0x08, 0, 0x28, 0]);
        let read = decode(&envelope("apps/v1", "Deployment", &deployment)).unwrap();
        assert_eq!(read["spec"], json!({"replicas": 0}));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert_eq!(decode(b"k8s\0\xff").unwrap_err().code, 400);
        assert_eq!(decode(&envelope("none/v1", "None", &[])).unwrap_err().code, 415);
    }
}
