//! Bodies in protobuf, which typed Go clients send for the built-in kinds: the kinds that commands create are read.
//!
//! Answers are always JSON; every such client accepts it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::status::ApiError;

/// What a field holds.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    Bytes,
    Int,
    Bool,
    Time,
    Message(&'static [Field]),
    Texts,
    Messages(&'static [Field]),
    TextMap,
    BytesMap,
}

/// A field's number, its name in JSON, and what it holds.
type Field = (u64, &'static str, Holds);

use Holds::{Bool, Bytes, BytesMap, Int, Message, Messages, Text, TextMap, Texts, Time};

const OWNER: &[Field] = &[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", Bool),
    (7, "blockOwnerDeletion", Bool),
];
const META: &[Field] = &[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (7, "generation", Int),
    (8, "creationTimestamp", Time),
    (9, "deletionTimestamp", Time),
    (11, "labels", TextMap),
    (12, "annotations", TextMap),
    (13, "ownerReferences", Messages(OWNER)),
    (14, "finalizers", Texts),
];
const NAMED: &[Field] = &[(1, "name", Text)];
const DELETE: &[Field] = &[
    (1, "gracePeriodSeconds", Int),
    (2, "preconditions", Message(&[(1, "uid", Text), (2, "resourceVersion", Text)])),
    (4, "propagationPolicy", Text),
    (5, "dryRun", Texts),
];
const RULE: &[Field] = &[
    (1, "verbs", Texts),
    (2, "apiGroups", Texts),
    (3, "resources", Texts),
    (4, "resourceNames", Texts),
    (5, "nonResourceURLs", Texts),
];
const BINDING: &[Field] = &[
    (1, "metadata", Message(META)),
    (2, "subjects", Messages(&[(1, "kind", Text), (2, "apiGroup", Text), (3, "name", Text), (4, "namespace", Text)])),
    (3, "roleRef", Message(&[(1, "apiGroup", Text), (2, "kind", Text), (3, "name", Text)])),
];
const ROLE: &[Field] = &[(1, "metadata", Message(META)), (2, "rules", Messages(RULE))];
const META_ONLY: &[Field] = &[(1, "metadata", Message(META))];
const ATTRIBUTES: &[Field] = &[
    (1, "namespace", Text),
    (2, "verb", Text),
    (3, "group", Text),
    (4, "version", Text),
    (5, "resource", Text),
    (6, "subresource", Text),
    (7, "name", Text),
];

/// The fields of a kind that is read.
fn message(kind: &str) -> Option<&'static [Field]> {
    Some(match kind {
        "Namespace" => &[(1, "metadata", Message(META)), (2, "spec", Message(&[(1, "finalizers", Texts)]))],
        "ConfigMap" => {
            &[(1, "metadata", Message(META)), (2, "data", TextMap), (3, "binaryData", BytesMap), (4, "immutable", Bool)]
        }
        "Secret" => &[
            (1, "metadata", Message(META)),
            (2, "data", BytesMap),
            (3, "type", Text),
            (4, "stringData", TextMap),
            (5, "immutable", Bool),
        ],
        "ServiceAccount" => &[
            (1, "metadata", Message(META)),
            (3, "imagePullSecrets", Messages(NAMED)),
            (4, "automountServiceAccountToken", Bool),
        ],
        "Role" | "ClusterRole" => ROLE,
        "RoleBinding" | "ClusterRoleBinding" => BINDING,
        "SelfSubjectReview" => META_ONLY,
        "SelfSubjectAccessReview" => &[
            (1, "metadata", Message(META)),
            (
                2,
                "spec",
                Message(&[
                    (1, "resourceAttributes", Message(ATTRIBUTES)),
                    (2, "nonResourceAttributes", Message(&[(1, "path", Text), (2, "verb", Text)])),
                ]),
            ),
        ],
        "SelfSubjectRulesReview" => &[(1, "metadata", Message(META)), (2, "spec", Message(&[(1, "namespace", Text)]))],
        "TokenRequest" => &[
            (1, "metadata", Message(META)),
            (2, "spec", Message(&[(1, "audiences", Texts), (4, "expirationSeconds", Int)])),
        ],
        "Scale" => &[(1, "metadata", Message(META)), (2, "spec", Message(&[(1, "replicas", Int)]))],
        "DeleteOptions" => DELETE,
        "Eviction" => &[(1, "metadata", Message(META)), (2, "deleteOptions", Message(DELETE))],
        _ => return None,
    })
}

const TYPE: &[Field] = &[(1, "apiVersion", Text), (2, "kind", Text)];
const ENVELOPE: &[Field] = &[(1, "type", Message(TYPE)), (2, "raw", Bytes)];

/// Reads a body: the envelope that says what it is, then the object.
pub(super) fn decode(body: &[u8]) -> Result<Value, ApiError> {
    let malformed = || ApiError::bad_request("the body is not a protobuf object");
    let envelope = body.strip_prefix(b"k8s\0").ok_or_else(malformed)?;
    let read = object(envelope, ENVELOPE).ok_or_else(malformed)?;
    let text = |name: &str| read["type"][name].as_str().unwrap_or_default().to_owned();
    let raw = STANDARD.decode(read["raw"].as_str().unwrap_or_default()).map_err(|_| malformed())?;
    let fields =
        message(&text("kind")).ok_or_else(|| ApiError::unsupported_media_type("application/json, application/yaml"))?;
    let mut out = Map::new();
    out.insert("apiVersion".into(), text("apiVersion").into());
    out.insert("kind".into(), text("kind").into());
    out.extend(object(&raw, fields).ok_or_else(malformed)?);
    Ok(Value::Object(out))
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

enum Wire<'a> {
    Number(u64),
    Slice(&'a [u8]),
}

fn wire<'a>(bytes: &mut &'a [u8]) -> Option<(u64, Wire<'a>)> {
    let tag = varint(bytes)?;
    let length = match tag & 7 {
        0 => return Some((tag >> 3, Wire::Number(varint(bytes)?))),
        1 => 8,
        2 => usize::try_from(varint(bytes)?).ok()?,
        5 => 4,
        _ => return None,
    };
    let (slice, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some((tag >> 3, Wire::Slice(slice)))
}

fn text(slice: &[u8]) -> Value {
    String::from_utf8_lossy(slice).into_owned().into()
}

/// One entry of a map: its key and its value's bytes.
fn entry(mut slice: &[u8]) -> Option<(String, &[u8])> {
    let (mut key, mut value) = (String::new(), &[][..]);
    while !slice.is_empty() {
        match wire(&mut slice)? {
            (1, Wire::Slice(bytes)) => key = String::from_utf8_lossy(bytes).into_owned(),
            (2, Wire::Slice(bytes)) => value = bytes,
            _ => {}
        }
    }
    Some((key, value))
}

fn time(slice: &[u8]) -> Option<Value> {
    let read = object(slice, &[(1, "seconds", Int)])?;
    let seconds = read.get("seconds").and_then(Value::as_i64)?;
    Some(super::server::stamp(Timestamp::from_second(seconds).ok()?).into())
}

fn object(mut bytes: &[u8], fields: &[Field]) -> Option<Map<String, Value>> {
    let mut out = Map::new();
    while !bytes.is_empty() {
        let (number, value) = wire(&mut bytes)?;
        let Some((_, name, holds)) = fields.iter().find(|(own, ..)| *own == number) else { continue };
        let one = match (*holds, value) {
            // Text that is not said is sent as empty text.
            (Text, Wire::Slice([])) => continue,
            (Text, Wire::Slice(slice)) => text(slice),
            (Bytes, Wire::Slice(slice)) => STANDARD.encode(slice).into(),
            (Int, Wire::Number(number)) => json!(number.cast_signed()),
            (Bool, Wire::Number(number)) => json!(number != 0),
            (Time, Wire::Slice(slice)) => time(slice).unwrap_or(Value::Null),
            (Message(fields), Wire::Slice(slice)) => Value::Object(object(slice, fields)?),
            (Texts, Wire::Slice(slice)) => json!([text(slice)]),
            (Messages(fields), Wire::Slice(slice)) => json!([object(slice, fields)?]),
            (TextMap, Wire::Slice(slice)) => entry(slice).map(|(key, value)| json!({key: text(value)}))?,
            (BytesMap, Wire::Slice(slice)) => entry(slice).map(|(key, value)| json!({key: STANDARD.encode(value)}))?,
            _ => continue,
        };
        // A repeated field and a map come one item at a time.
        match (out.get_mut(*name), one) {
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            (Some(Value::Object(map)), Value::Object(more)) => map.extend(more),
            (_, one) => drop(out.insert((*name).to_owned(), one)),
        }
    }
    Some(out)
}
