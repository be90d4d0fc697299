//! Takes secrets out of whole files, by their kind.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use crate::secret::{MASK, Redactor};

/// The content without secrets. JSON and YAML stay what they are.
pub(super) fn file<'a>(redactor: &Redactor, path: &str, content: &'a [u8]) -> Cow<'a, [u8]> {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "json" => {
            let Ok(mut value) = serde_json::from_slice::<Value>(content) else {
                return redactor.bytes(content);
            };
            if !redactor.json(&mut value) {
                return Cow::Borrowed(content);
            }
            let mut clean = serde_json::to_vec_pretty(&value).unwrap_or_default();
            clean.push(b'\n');
            Cow::Owned(clean)
        }
        "yaml" | "yml" => match secret_data(content) {
            Some(clean) => Cow::Owned(redactor.bytes(&clean).into_owned()),
            None => redactor.bytes(content),
        },
        _ => redactor.bytes(content),
    }
}

/// A YAML file with the data of its Secret objects replaced by their length; nothing when it has none.
fn secret_data(content: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(content).ok()?;
    if !text.contains("Secret") {
        return None;
    }
    let mut clean = String::with_capacity(text.len());
    for document in text.split_inclusive("\n---") {
        let is_secret = document.lines().any(|line| {
            let line = line.trim_start_matches(['-', ' ']);
            line.strip_prefix("kind:").is_some_and(|kind| kind.trim().trim_matches(['"', '\'']) == "Secret")
        });
        if is_secret {
            mask_data(document, &mut clean);
        } else {
            clean.push_str(document);
        }
    }
    Some(clean.into_bytes())
}

/// Replaces every value below `data:` and `stringData:`; a block that goes on over several lines counts as one value.
fn mask_data(document: &str, clean: &mut String) {
    // The column of `data:`, and of the keys below it once one was seen.
    let mut section: Option<(usize, Option<usize>)> = None;
    for line in document.split_inclusive('\n') {
        let body = line.trim_end();
        let column = body.len() - body.trim_start_matches([' ', '-']).len();
        if let Some((outer, keys)) = section
            && !body.trim().is_empty()
        {
            if column <= outer || body == "---" {
                section = None;
            } else {
                let keys = keys.unwrap_or(column);
                section = Some((outer, Some(keys)));
                if column == keys
                    && let Some((key, value)) = body.split_once(':')
                {
                    let _ = writeln!(clean, "{key}: '{MASK} ({} bytes)'", value.trim().len());
                }
                continue;
            }
        }
        let key = body.trim_start_matches([' ', '-']);
        if let Some(value) = key.strip_prefix("data:").or_else(|| key.strip_prefix("stringData:")) {
            if value.trim().is_empty() {
                section = Some((column, None));
            } else {
                // Flow style: the whole of it is one value.
                let (name, _) = body.split_once(':').unwrap_or((body, ""));
                let _ = writeln!(clean, "{name}: {{}} # {MASK}");
                section = Some((column, Some(usize::MAX)));
                continue;
            }
        }
        clean.push_str(line);
    }
}
