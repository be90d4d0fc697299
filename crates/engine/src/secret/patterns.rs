//! Shapes of secrets that nobody told the redactor about.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::bytes::Regex;

use super::fields::is_plain_word;

struct Pattern {
    /// Lower-case texts without which the expression cannot match; looked for first, since that is cheap.
    triggers: &'static [&'static str],
    regex: &'static str,
    /// The value must look like one, not like a word of a sentence.
    picky: bool,
}

/// The group `s` of each is what is masked.
const PATTERNS: [Pattern; 9] = [
    Pattern {
        triggers: &["-----begin "],
        regex: r"-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|ENTITLEMENT DATA|RSA SIGNATURE)-----(?P<s>(?s:.*?)-----END [A-Z0-9 ]+-----|[A-Za-z0-9+/=\s\\,:-]*)",
        picky: false,
    },
    Pattern {
        triggers: &["eyj"],
        regex: r"(?P<s>eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?|eyJhdXRo[A-Za-z0-9+/=_-]+)",
        picky: false,
    },
    Pattern {
        triggers: &["authorization"],
        regex: r#"(?i)authorization["']?[ \t]*[:=][ \t]*["']?(?P<s>(?:bearer|basic|negotiate|digest)[ \t]+[^"'\s]+|[^"'\s]{8,})"#,
        picky: false,
    },
    Pattern { triggers: &["bearer"], regex: r"(?i)\bbearer[ \t]+(?P<s>[A-Za-z0-9._~+/=-]{16,})", picky: true },
    Pattern {
        triggers: &["://"],
        regex: r#"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@"'<>]*:(?P<s>[^@/\s"'<>]+)@"#,
        picky: false,
    },
    Pattern {
        triggers: &["sha256~", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "nvapi-"],
        regex: r"(?P<s>sha256~[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{16,}|xox[abprs]-[A-Za-z0-9-]{10,}|nvapi-[A-Za-z0-9_-]{20,})",
        picky: false,
    },
    Pattern {
        triggers: &["password", "passwd", "passphrase", "token", "secret", "key", "dockerc"],
        regex: r#"(?i)(?:password|passwd|passphrase|token|client[_-]?key[_-]?data|client[_-]?secret|secret[_-]?(?:access[_-]?)?key|api[_-]?key|private[_-]?key|dockerconfigjson|dockercfg)(?P<sign>\\?["']?[ \t]*(?::[ \t]*|=)\\?["']?)(?P<s>[^\s"'\\,;&{}\[\]()<>|]{6,})"#,
        picky: true,
    },
    Pattern {
        // A registry's credentials in a pull secret, as JSON or as JSON inside of text.
        triggers: &["auth"],
        regex: r#"(?i)["']auth\\*["'][ \t]*:\s*\\*["'](?P<s>[A-Za-z0-9+/=_-]{6,})"#,
        picky: false,
    },
    Pattern {
        triggers: &["--password", "--token", "--secret", "--api-key", "--docker-password"],
        regex: r#"(?i)--(?:docker-)?(?:password|token|secret|api-key)[ \t]+["']?(?P<s>[^\s"'-][^\s"']{5,})"#,
        picky: true,
    },
];

static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let compile =
        |pattern: &Pattern| Regex::new(&format!("(?-u){}", pattern.regex)).expect("invariant: a constant expression");
    PATTERNS.iter().map(compile).collect()
});

static TRIGGERS: LazyLock<(AhoCorasick, Vec<usize>)> = LazyLock::new(|| {
    let mut owners = Vec::new();
    let mut texts = Vec::new();
    for (owner, pattern) in PATTERNS.iter().enumerate() {
        for trigger in pattern.triggers {
            owners.push(owner);
            texts.push(*trigger);
        }
    }
    let search = AhoCorasick::builder().ascii_case_insensitive(true).build(texts);
    (search.expect("invariant: a few short constant texts"), owners)
});

/// Where such secrets are.
pub(super) fn spans(text: &[u8], into: &mut Vec<Range<usize>>) {
    let (search, owners) = &*TRIGGERS;
    let mut wanted = [false; PATTERNS.len()];
    for hit in search.find_overlapping_iter(text) {
        wanted[owners[hit.pattern().as_usize()]] = true;
    }
    for (at, pattern) in PATTERNS.iter().enumerate() {
        if !wanted[at] {
            continue;
        }
        for found in COMPILED[at].captures_iter(text) {
            // After `=` or a quote stands a value, after a colon perhaps the rest of a sentence.
            let sure = found.name("sign").is_some_and(|sign| sign.as_bytes().iter().any(|sign| b"=\"'".contains(sign)));
            if let Some(span) = found.name("s")
                && !(pattern.picky && is_no_value(span.as_bytes(), sure))
                && !span.is_empty()
            {
                into.push(span.range());
            }
        }
    }
}

/// `token: expired`, `password: required` are sentences; a value has a digit, mixed case or a sign in it.
fn is_no_value(value: &[u8], sure: bool) -> bool {
    let text = String::from_utf8_lossy(value);
    let text = text.trim_end_matches(['.', ':', '!', '?']);
    if is_plain_word(text) || text.starts_with('$') {
        return true;
    }
    let word = |c: char| c.is_ascii_lowercase() || c == '-' || c == '_';
    !sure && text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().skip(1).all(word)
}
