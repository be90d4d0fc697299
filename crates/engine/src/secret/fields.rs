//! Finds the secret parts of files that hold several things: kubeconfig, pull secret, PEM bundle, credentials file.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::bytes::Regex;
use serde_json::Value;

/// Values of such lines are secret. The key may be quoted, and stand behind a dash.
static LINES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)^[ \t-]*["']?([A-Za-z0-9_.-]+)["']?[ \t]*([:=])[ \t]*["']?([^\s"',]+)["']?[ \t\r,]*$"#)
        .expect("invariant: a constant expression")
});

static PEM: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END [A-Z0-9 ]+-----")
        .expect("invariant: a constant expression")
});

/// The password of a URL. Logs show its parts without the scheme that gives it away.
static URL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@"'<>]*:([^@/\s"'<>]+)@"#).expect("invariant: a constant expression")
});

/// How the names of secret things end, without signs and capitals.
const ENDINGS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "token",
    "clientkeydata",
    "clientsecret",
    "secretkey",
    "secretaccesskey",
    "apikey",
    "privatekey",
    "credentials",
    "dockerconfigjson",
];

/// Whether what stands under this key is secret.
pub(crate) fn is_secret_key(key: &str) -> bool {
    let key: String = key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    key == "auth" || key == "authorization" || key == "dockercfg" || ENDINGS.iter().any(|ending| key.ends_with(ending))
}

/// Words that are never a secret, whatever they stand under.
pub(crate) fn is_plain_word(value: &str) -> bool {
    const WORDS: [&str; 10] = ["", "true", "false", "null", "none", "nil", "yes", "no", "~", super::MASK];
    WORDS.iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

/// The secret parts of a secret file's content, the content itself included.
pub(super) fn parts(content: &[u8]) -> Vec<Vec<u8>> {
    let mut found = vec![content.to_vec()];
    found.extend(url_passwords(content));
    if let Ok(value) = serde_json::from_slice::<Value>(content)
        && (value.is_object() || value.is_array())
    {
        found.push(value.to_string().into_bytes());
        json_parts(&value, false, &mut found);
        return found;
    }
    let mut structured = false;
    for block in PEM.captures_iter(content) {
        structured = true;
        if block[1].ends_with(b"CERTIFICATE") && is_kubeconfig(content) {
            continue;
        }
        for line in block[2].split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            if line.len() >= 16 && !line.contains(&b':') {
                found.push(line.to_vec());
            }
        }
        let joined: Vec<u8> = block[2].iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
        found.push(joined);
    }
    for line in LINES.captures_iter(content) {
        let key = String::from_utf8_lossy(&line[1]).into_owned();
        let value = String::from_utf8_lossy(&line[3]).into_owned();
        structured |= &line[2] == b":" || is_secret_key(&key);
        if is_secret_key(&key) && !is_plain_word(&value) {
            push_decoded(&value, &mut found);
        }
    }
    if !structured {
        for line in content.split(|byte| *byte == b'\n') {
            let line = line.trim_ascii();
            if line.len() >= 8 {
                found.push(line.to_vec());
            }
        }
    }
    found
}

/// The passwords of the URLs in a text.
pub(super) fn url_passwords(content: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    URL.captures_iter(content).map(|url| url[1].to_vec())
}

fn is_kubeconfig(content: &[u8]) -> bool {
    content.windows(9).any(|window| window == b"clusters:")
}

/// `inside` is set below a Secret's data, where every value counts.
fn json_parts(value: &Value, inside: bool, found: &mut Vec<Vec<u8>>) {
    match value {
        Value::Object(map) => {
            let secret_object = map.get("kind").and_then(Value::as_str) == Some("Secret");
            for (key, value) in map {
                let below = inside || (secret_object && (key == "data" || key == "stringData"));
                match value {
                    Value::String(text) if below || is_secret_key(key) => {
                        if !is_plain_word(text) {
                            push_decoded(text, found);
                        }
                    }
                    _ => json_parts(value, below, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| json_parts(item, inside, found)),
        _ => {}
    }
}

/// The value, and what it holds when it is base64: a key, `user:password`, or another file with secret parts.
fn push_decoded(value: &str, found: &mut Vec<Vec<u8>>) {
    found.push(value.as_bytes().to_vec());
    let Ok(decoded) = STANDARD.decode(value.trim()) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(&decoded) else {
        return;
    };
    if text.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return;
    }
    if let Some((_, password)) = text.split_once(':')
        && !text.contains('\n')
        && !text.starts_with('{')
    {
        found.push(password.as_bytes().to_vec());
    }
    found.extend(parts(text.as_bytes()));
}
