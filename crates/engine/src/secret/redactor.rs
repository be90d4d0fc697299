//! Takes secret values out of text, bytes and JSON.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use aho_corasick::AhoCorasick;
use serde_json::Value;

use super::fields::{is_plain_word, is_secret_key, parts};
use super::forms::forms;
use super::{MASK, Secret, patterns};
use crate::run::readable;

/// Knows the secrets of a run. Cheap to clone; clones share what they know, so that a secret learned on the way is
/// masked everywhere from then on.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<Known>>);

/// Only this much of a needle is searched for; the rest is compared. Keeps the automaton small when a long file is
/// secret, and masks copies that were cut short.
const HEAD: usize = 32;

#[derive(Default)]
struct Known {
    needles: BTreeSet<Vec<u8>>,
    search: Option<Search>,
}

struct Search {
    heads: AhoCorasick,
    /// The needles that begin with each head.
    needles: Vec<Vec<Vec<u8>>>,
}

impl Search {
    fn new(needles: &BTreeSet<Vec<u8>>) -> Option<Self> {
        let mut by_head: BTreeMap<&[u8], Vec<Vec<u8>>> = BTreeMap::new();
        for needle in needles {
            let head = &needle[..needle.len().min(HEAD)];
            by_head.entry(head).or_default().push(needle.clone());
        }
        Some(Self { heads: AhoCorasick::new(by_head.keys()).ok()?, needles: by_head.into_values().collect() })
    }

    fn spans(&self, bytes: &[u8], into: &mut Vec<Range<usize>>) {
        for hit in self.heads.find_overlapping_iter(bytes) {
            let rest = &bytes[hit.start()..];
            let same = |needle: &Vec<u8>| needle.iter().zip(rest).take_while(|(a, b)| a == b).count();
            let length = self.needles[hit.pattern().as_usize()].iter().map(same).max();
            into.push(hit.start()..hit.start() + length.unwrap_or(0));
        }
    }
}

impl Redactor {
    /// Knows no value yet, only the shapes of secrets.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on this value is masked, in every likely encoding; of a kubeconfig, pull secret, PEM bundle or
    /// credentials file also each secret part. Values shorter than six bytes are not masked.
    pub fn register(&self, content: impl AsRef<[u8]>) {
        let mut needles = BTreeSet::new();
        for part in parts(content.as_ref()) {
            forms(&part, &mut needles);
        }
        needles.retain(|needle| needle.len() >= super::forms::SHORTEST && !needle.iter().all(u8::is_ascii_whitespace));
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.needles.len();
        known.needles.extend(needles);
        if known.needles.len() != before {
            known.search = None;
        }
    }

    /// From now on the password in this URL is masked, with or without the rest of the URL around it.
    pub fn url(&self, url: &str) {
        for password in super::fields::url_passwords(url.as_bytes()) {
            self.register(password);
        }
    }

    /// From now on this secret is masked.
    pub fn secret(&self, secret: &Secret) {
        self.register(secret.expose());
    }

    /// The text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
        }
    }

    /// The bytes without secrets; anything else stays as it is, valid UTF-8 or not.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let spans = self.spans(bytes);
        if spans.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut clean = Vec::with_capacity(bytes.len());
        let mut at = 0;
        for span in spans {
            clean.extend_from_slice(&bytes[at..span.start]);
            clean.extend_from_slice(MASK.as_bytes());
            at = span.end;
        }
        clean.extend_from_slice(&bytes[at..]);
        Cow::Owned(clean)
    }

    /// Takes secrets out of a JSON document without touching its structure: values under secret keys, the data of
    /// Secret objects (key and length stay), environment variables with secret names. True when something was found.
    pub fn json(&self, value: &mut Value) -> bool {
        self.walk(value, false)
    }

    /// The same for one of our own records, whose keys and identifiers (times, uids, states) must stay exact.
    pub(crate) fn own_json(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.mask_string(text),
            Value::Array(items) => any_of(items, |item| self.own_json(item)),
            Value::Object(map) => any_of(map, |(key, value)| match value {
                Value::String(text) if is_identifier(key, text) => false,
                Value::Array(words) if key == "command" => self.command(words),
                // Parts of somebody else's objects: no key in there is ours.
                _ if key == "undo" || key == "value" => self.json(value),
                _ => self.own_json(value),
            }),
            _ => false,
        }
    }

    /// A command's arguments: what follows `--token` is masked whatever it looks like.
    fn command(&self, words: &mut [Value]) -> bool {
        let mut follows_flag = false;
        any_of(words, |word| {
            let Value::String(text) = word else { return false };
            let flag = text.strip_prefix("--");
            let masked = follows_flag && flag.is_none();
            follows_flag = flag.is_some_and(|flag| !flag.contains('=') && is_secret_key(flag));
            if masked {
                MASK.clone_into(text);
                return true;
            }
            self.mask_string(text)
        })
    }

    fn walk(&self, value: &mut Value, below_secret: bool) -> bool {
        match value {
            Value::String(text) if below_secret => {
                *text = format!("{MASK} ({} bytes)", text.len());
                true
            }
            Value::String(text) => self.nested(text) | self.mask_string(text),
            Value::Array(items) => any_of(items, |item| self.walk(item, below_secret)),
            Value::Object(map) => {
                let secret_object = map.get("kind").and_then(Value::as_str) == Some("Secret");
                let secret_variable = map.get("name").and_then(Value::as_str).is_some_and(is_secret_key);
                let found = any_of(map.iter_mut(), |(key, value)| {
                    let below = below_secret || (secret_object && (key == "data" || key == "stringData"));
                    let secret_field = is_secret_key(key) || (secret_variable && key == "value");
                    match value {
                        Value::String(text) if !below && secret_field && !is_plain_word(text) => {
                            MASK.clone_into(text);
                            true
                        }
                        _ => self.walk(value, below),
                    }
                });
                self.mask_keys(map) || found
            }
            _ => false,
        }
    }

    /// An object that is kept as text, as `kubectl apply` does in an annotation.
    pub(crate) fn nested(&self, text: &mut String) -> bool {
        if !text.trim_start().starts_with(['{', '[']) {
            return false;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(text) else { return false };
        let found = self.walk(&mut value, false);
        if found {
            *text = value.to_string();
        }
        found
    }

    fn mask_keys(&self, map: &mut serde_json::Map<String, Value>) -> bool {
        if map.keys().all(|key| matches!(self.text(key), Cow::Borrowed(_))) {
            return false;
        }
        let mut clean = serde_json::Map::new();
        for (key, value) in std::mem::take(map) {
            let mut name = self.text(&key).into_owned();
            while clean.contains_key(&name) {
                name.push('*');
            }
            clean.insert(name, value);
        }
        *map = clean;
        true
    }

    fn mask_string(&self, text: &mut String) -> bool {
        let mut masked = self.text(text).into_owned();
        // Whoever shows it takes escape sequences out, which must not put a secret together again.
        if masked.contains(|c: char| c.is_control() && c != '\n') {
            let shown = readable(&masked);
            if let Cow::Owned(clean) = self.text(&shown) {
                masked = clean;
            }
        }
        let found = masked != *text;
        *text = masked;
        found
    }

    /// Where secrets are, in order and without overlaps.
    fn spans(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(search) = &known.search {
            search.spans(bytes, &mut spans);
        } else if !known.needles.is_empty() {
            // Built when first needed: secrets are registered one after the other.
            drop(known);
            let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
            known.search = Search::new(&known.needles);
            if let Some(search) = &known.search {
                search.spans(bytes, &mut spans);
            }
        }
        patterns::spans(bytes, &mut spans);
        if spans.len() < 2 {
            return spans;
        }
        spans.sort_unstable_by_key(|span| (span.start, span.end));
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => merged.push(span),
            }
        }
        merged
    }
}

/// Does it to every item, and says whether it found something in one of them.
fn any_of<T>(items: impl IntoIterator<Item = T>, mut change: impl FnMut(T) -> bool) -> bool {
    let mut found = false;
    for item in items {
        found |= change(item);
    }
    found
}

/// Fields of our own records that are ours or the API server's, never a secret, and needed exactly.
fn is_identifier(key: &str, text: &str) -> bool {
    const KEYS: [&str; 10] = ["at", "event", "entry", "state", "role", "verdict", "exit", "uid", "api_version", "kind"];
    KEYS.contains(&key) && text.len() <= 80 && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:/".contains(c))
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}
