//! The encodings in which a secret value is likely to turn up.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Shorter values are not masked: they would hit ordinary words (`true`, `admin`) all over the files.
pub(super) const SHORTEST: usize = 6;

/// Column widths at which tools break long base64.
const WRAPS: [usize; 2] = [64, 76];

/// Every form of one value that is looked for.
pub(super) fn forms(value: &[u8], into: &mut BTreeSet<Vec<u8>>) {
    let trimmed = value.trim_ascii();
    if trimmed.len() < SHORTEST {
        return;
    }
    for raw in [value, trimmed] {
        into.insert(raw.to_vec());
        escaped(raw, into);
        wrapped_base64(raw, into);
    }
    base64_cores(trimmed, into);
    percent(trimmed, into);
    hex(trimmed, into);
}

/// As it looks inside JSON (as we and as Go write it, once and twice), and inside XML or HTML.
fn escaped(value: &[u8], into: &mut BTreeSet<Vec<u8>>) {
    let Ok(text) = std::str::from_utf8(value) else {
        return;
    };
    let json = json_inner(text);
    let go = json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    into.insert(json_inner(&json).into_bytes());
    into.insert(go.into_bytes());
    into.insert(json.replace('/', "\\/").into_bytes());
    into.insert(json.into_bytes());
    let xml = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    into.insert(xml.replace('"', "&quot;").replace('\'', "&#39;").into_bytes());
    into.insert(xml.replace('"', "&#34;").replace('\'', "&apos;").into_bytes());
    // Inside a single-quoted word of a shell, and as Rust's Debug writes it.
    into.insert(text.replace('\'', "'\\''").into_bytes());
    into.insert(format!("{text:?}").trim_matches('"').as_bytes().to_vec());
}

fn json_inner(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The part of the base64 that depends on the value alone, wherever in a longer text the value stood: this also covers
/// `user:value`, a trailing newline, and a value inside an encoded file.
fn base64_cores(value: &[u8], into: &mut BTreeSet<Vec<u8>>) {
    for offset in 0..3 {
        let mut shifted = vec![0; offset];
        shifted.extend_from_slice(value);
        let start = (offset * 8).div_ceil(6);
        let end = shifted.len() * 8 / 6;
        if end < start + SHORTEST {
            continue;
        }
        into.insert(STANDARD_NO_PAD.encode(&shifted).as_bytes()[start..end].to_vec());
        into.insert(URL_SAFE_NO_PAD.encode(&shifted).as_bytes()[start..end].to_vec());
    }
}

fn wrapped_base64(value: &[u8], into: &mut BTreeSet<Vec<u8>>) {
    let encoded = STANDARD.encode(value);
    into.insert(encoded.clone().into_bytes());
    for width in WRAPS {
        if encoded.len() <= width {
            continue;
        }
        for line in encoded.as_bytes().chunks(width).filter(|line| line.len() >= 16) {
            into.insert(line.to_vec());
        }
    }
}

fn percent(value: &[u8], into: &mut BTreeSet<Vec<u8>>) {
    // Encoders differ in what they leave alone; these three sets cover the usual ones.
    for plain in ["-_.~", "-_.!~*'()", "-_.~!$&'()*+,;=:@/"] {
        for upper in [true, false] {
            let mut text = String::new();
            for byte in value {
                if byte.is_ascii_alphanumeric() || plain.as_bytes().contains(byte) {
                    text.push(char::from(*byte));
                } else if upper {
                    let _ = write!(text, "%{byte:02X}");
                } else {
                    let _ = write!(text, "%{byte:02x}");
                }
            }
            into.insert(text.replace("%20", "+").into_bytes());
            into.insert(text.into_bytes());
        }
    }
}

fn hex(value: &[u8], into: &mut BTreeSet<Vec<u8>>) {
    let mut lower = String::new();
    for byte in value {
        let _ = write!(lower, "{byte:02x}");
    }
    into.insert(lower.to_ascii_uppercase().into_bytes());
    into.insert(lower.into_bytes());
}
