//! What a path and a query ask for.

use std::collections::BTreeMap;

/// An addressed resource or object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) group: String,
    pub(super) version: String,
    /// Empty for all namespaces and for cluster-scoped kinds.
    pub(super) namespace: String,
    pub(super) plural: String,
    /// Empty for the whole collection.
    pub(super) name: String,
    pub(super) subresource: String,
}

/// A path, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// `/version`.
    Version,
    /// `/readyz` and its kin.
    Health,
    /// `/api`, `/apis`.
    Roots { core: bool },
    /// `/apis/g`.
    Group(String),
    /// `/api/v1`, `/apis/g/v`.
    Resources { group: String, version: String },
    /// `/openapi/v3` and below.
    OpenApi(String),
    /// `/openapi/v2`.
    OldOpenApi,
    /// Everything else.
    Target(Target),
    /// Nothing that is served.
    Unknown,
}

impl Route {
    pub(super) fn parse(path: &str) -> Self {
        let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(decode).collect();
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            ["version"] => Self::Version,
            ["readyz" | "livez" | "healthz", ..] => Self::Health,
            ["api"] => Self::Roots { core: true },
            ["apis"] => Self::Roots { core: false },
            ["openapi", "v2"] => Self::OldOpenApi,
            ["openapi", "v3", rest @ ..] => Self::OpenApi(rest.join("/")),
            ["api", version] => Self::Resources { group: String::new(), version: (*version).to_owned() },
            ["apis", group] => Self::Group((*group).to_owned()),
            ["apis", group, version] => Self::Resources { group: (*group).to_owned(), version: (*version).to_owned() },
            ["api", version, rest @ ..] => target("", version, rest),
            ["apis", group, version, rest @ ..] => target(group, version, rest),
            _ => Self::Unknown,
        }
    }
}

fn target(group: &str, version: &str, rest: &[&str]) -> Route {
    let make = |namespace: &str, plural: &str, name: &str, subresource: &str| {
        Route::Target(Target {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.to_owned(),
            plural: plural.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        })
    };
    match rest {
        ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => make("", "namespaces", name, sub),
        ["namespaces", namespace, plural] => make(namespace, plural, "", ""),
        ["namespaces", namespace, plural, name] => make(namespace, plural, name, ""),
        ["namespaces", namespace, plural, name, sub] => make(namespace, plural, name, sub),
        [plural] => make("", plural, "", ""),
        [plural, name] => make("", plural, name, ""),
        [plural, name, sub] => make("", plural, name, sub),
        _ => Route::Unknown,
    }
}

/// A query string, understood.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    pub(super) fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(&name.replace('+', " ")), decode(&value.replace('+', " ")))
        });
        Self(pairs.collect())
    }

    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Says something else in a query.
    pub(super) fn set(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), "true" | "1" | "True" | "TRUE" | "t")
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name).parse().ok()
    }
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while index < bytes.len() {
        let byte = bytes[index];
        let hex = |offset: usize| bytes.get(index + offset).and_then(|byte| char::from(*byte).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (byte, hex(1), hex(2)) {
            out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
            index += 3;
        } else {
            out.push(byte);
            index += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
