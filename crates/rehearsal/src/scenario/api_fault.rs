//! What goes wrong at the API server, as a scenario file says it: one flat entry per fault.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kinds of faults of the API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApiFaultKind {
    /// The server restarts and is away for `lasts` seconds; all watches break. With a choice of requests (`verbs`, `path`,
    /// `skip`, …) it restarts when such a request comes, which then is done or not, and not answered.
    #[default]
    Restart,
    /// Running watches end with 410, and lists must start again.
    ExpiredWatch,
    /// 429 with a `Retry-After` of `retryAfter` seconds.
    Throttled,
    /// A 5xx answer, `code`.
    ServerError,
    /// Nobody listens.
    Refused,
    /// The connection breaks before the request arrives.
    Reset,
    /// The request is done, and the connection breaks before its answer.
    Unanswered,
    /// No answer ever comes.
    Stalled,
    /// The answer comes `seconds` late.
    Slow,
    /// 401.
    Unauthorized,
    /// 409: somebody else changed the object in the same moment. Meets only what writes.
    Conflict,
    /// The connection of a watch breaks in the middle of an event. Meets the watches that are open, and those that are
    /// chosen as they are opened.
    HalfEvent,
    /// Every watch and every continue token is answered with 410.
    Gone,
    /// Tokens expire. With `renewable`, a client that reads its credentials again gets a good one.
    ExpiredToken,
    /// The server shows a certificate of another authority. With `renewable`, a client that reads its configuration again
    /// trusts it.
    RotatedCertificate,
    /// The cluster's clock is `seconds` ahead of its clients' (behind when negative), from the start.
    ClockSkew,
    /// Lists are answered in pages of at most `objects`.
    ShortPages,
}

/// One thing that goes wrong at the API server. Whom it meets: everybody but the simulated controllers, unless `user` says
/// otherwise; a restart and the loss of history meet the controllers as well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ApiFault {
    /// What happens.
    pub kind: ApiFaultKind,
    /// From when on, in seconds after the start.
    pub at: f64,
    /// For how long, in seconds; absent means to the end. For a restart, how long the server is away.
    pub lasts: Option<f64>,
    /// Only requests of these verbs (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`).
    pub verbs: Vec<String>,
    /// Only requests whose path contains this.
    pub path: String,
    /// Only requests of this user.
    pub user: String,
    /// Not the first so many of these requests.
    pub skip: u64,
    /// At most so many of them.
    pub times: Option<u64>,
    /// Only each so manieth of them.
    pub every: Option<u64>,
    /// Only this share of them, between 0 and 1, drawn with the seed.
    pub rate: Option<f64>,
    /// The code of a server error: 500, 502, 503 or 504.
    pub code: Option<u16>,
    /// Value of the Retry-After header, in seconds.
    pub retry_after: Option<u32>,
    /// How slow, or how far off, in seconds.
    pub seconds: Option<f64>,
    /// How many objects fit on a page.
    pub objects: Option<usize>,
    /// Whether new credentials help.
    pub renewable: bool,
}

impl ApiFault {
    /// A fault of this kind, from the start and for good.
    pub fn new(kind: ApiFaultKind) -> Self {
        Self { kind, ..Self::default() }
    }

    /// From so many seconds after the start on.
    #[must_use]
    pub fn at(self, seconds: f64) -> Self {
        Self { at: seconds, ..self }
    }

    /// For so many seconds.
    #[must_use]
    pub fn lasting(self, seconds: f64) -> Self {
        Self { lasts: Some(seconds), ..self }
    }

    /// Whether it says which requests it is about.
    pub(crate) fn chooses(&self) -> bool {
        let anything = Self { kind: self.kind, at: self.at, lasts: self.lasts, ..Self::default() };
        let bare =
            Self { code: None, retry_after: None, seconds: None, objects: None, renewable: false, ..self.clone() };
        bare != anything
    }

    /// What makes no sense about it, with the field's name.
    pub(crate) fn nonsense(&self) -> Option<(&'static str, &'static str)> {
        use ApiFaultKind as K;
        let kind = self.kind;
        let timely = |seconds: f64| seconds.is_finite() && seconds >= 0.0;
        let is_about_requests = !matches!(
            kind,
            K::ExpiredWatch | K::Gone | K::ExpiredToken | K::RotatedCertificate | K::ClockSkew | K::ShortPages
        );
        let problems = [
            (!timely(self.at), "at", "wants a number of seconds, 0 or more"),
            (self.lasts.is_some_and(|lasts| !timely(lasts)), "lasts", "wants a number of seconds, 0 or more"),
            (kind == K::Restart && self.lasts.is_none(), "lasts", "is needed: a server that restarts comes back"),
            (self.rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate)), "rate", "wants a number between 0 and 1"),
            (self.every == Some(0), "every", "wants 1 or more"),
            (self.code.is_some() != (kind == K::ServerError), "code", "belongs to serverError, which needs it"),
            (self.code.is_some_and(|code| ![500, 502, 503, 504].contains(&code)), "code", "wants 500, 502, 503 or 504"),
            (self.retry_after.is_some() && kind != K::Throttled, "retryAfter", "belongs to throttled"),
            (
                self.seconds.is_some() != matches!(kind, K::Slow | K::ClockSkew),
                "seconds",
                "belongs to slow and clockSkew, which need it",
            ),
            (
                self.seconds.is_some_and(|seconds| !seconds.is_finite() || kind == K::Slow && seconds < 0.0),
                "seconds",
                "wants a number of seconds",
            ),
            (self.objects.is_some() != (kind == K::ShortPages), "objects", "belongs to shortPages, which needs it"),
            (self.objects == Some(0), "objects", "wants 1 or more"),
            (
                self.renewable && !matches!(kind, K::ExpiredToken | K::RotatedCertificate),
                "renewable",
                "belongs to expiredToken and rotatedCertificate",
            ),
            (kind == K::ClockSkew && self.at > 0.0, "at", "is of no use: a clock is wrong from the start"),
            (
                !is_about_requests && self.chooses(),
                "kind",
                "is about no requests: leave verbs, path, user, skip, times, every and rate out",
            ),
        ];
        problems.into_iter().find(|(is_wrong, ..)| *is_wrong).map(|(_, field, what)| (field, what))
    }
}

#[cfg(test)]
mod tests {
    use crate::Scenario;

    #[test]
    fn each_kind_is_read_by_its_name_and_nonsense_is_named() {
        let good = "apiFaults:\n\
            - {kind: restart, at: 20, lasts: 5}\n\
            - {kind: restart, lasts: 5, verbs: [create], path: /pods, times: 1}\n\
            - {kind: throttled, retryAfter: 5, rate: 0.3}\n\
            - {kind: serverError, code: 503, every: 7, user: jane}\n\
            - {kind: unanswered, verbs: [patch], skip: 3, times: 1}\n\
            - {kind: slow, seconds: 8, verbs: [list]}\n\
            - {kind: gone, at: 100, lasts: 30}\n\
            - {kind: expiredToken, at: 60, renewable: true}\n\
            - {kind: clockSkew, seconds: -420}\n\
            - {kind: shortPages, objects: 2}\n";
        let scenario = Scenario::from_yaml("mine.yaml", good).unwrap();
        assert_eq!(scenario.api_faults.len(), 10);
        assert_eq!(scenario.api_faults[3].code, Some(503));
        for (text, field) in [
            ("{kind: restart}", "lasts"),
            ("{kind: serverError}", "code"),
            ("{kind: serverError, code: 404}", "code"),
            ("{kind: stalled, rate: 2}", "rate"),
            ("{kind: stalled, retryAfter: 2}", "retryAfter"),
            ("{kind: slow}", "seconds"),
            ("{kind: gone, verbs: [get]}", "verbs"),
            ("{kind: reset, renewable: true}", "renewable"),
            ("{kind: clockSkew, seconds: 5, at: 3}", "at"),
            ("{kind: shortPages, objects: 0}", "objects"),
        ] {
            let error = Scenario::from_yaml("mine.yaml", &format!("apiFaults: [{text}]")).unwrap_err().to_string();
            assert!(error.contains("apiFaults[0]") && error.contains(field), "{text}: {error}");
        }
    }
}
