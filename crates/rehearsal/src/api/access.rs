//! Users, and whether they may do what they ask for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{rbac, route::Target, status::ApiError};
use crate::store::{Resource, Store};

/// Whom nothing but a [`Deny`] stops.
const MASTERS: &str = "system:masters";

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
}

impl User {
    /// The cluster's administrator.
    pub fn admin() -> Self {
        Self::trusted("system:admin")
    }

    /// A user who may do everything that is not denied: a part of the cluster itself.
    pub fn trusted(name: &str) -> Self {
        Self { name: name.into(), groups: vec![MASTERS.into(), "system:authenticated".into()] }
    }

    /// Any other user, who has the rights of the roles that are bound to the name or its groups.
    pub fn named(name: &str) -> Self {
        let mut groups = Vec::new();
        if let Some((namespace, _)) = service_account(name) {
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        }
        let known = name != "system:anonymous";
        groups.push(if known { "system:authenticated".into() } else { "system:unauthenticated".into() });
        Self { name: name.into(), groups }
    }

    /// Whether no role is asked about the user's rights.
    pub(super) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"username": self.name, "groups": self.groups})
    }
}

/// Namespace and name of the service account that a user's name stands for.
pub(super) fn service_account(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?.split_once(':')
}

/// Something that a user may not do, whatever the roles say. Empty fields stand for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deny {
    /// Such as `create`.
    pub verbs: Vec<String>,
    /// The API group; `None` stands for every group, the empty text for the core group.
    pub group: Option<String>,
    /// Plural names, with their subresource if any: `pods`, `pods/log`.
    pub resources: Vec<String>,
    /// Namespaces.
    pub namespaces: Vec<String>,
}

impl Deny {
    /// Denies one verb on one resource everywhere.
    pub fn verb(verb: &str, group: &str, resource: &str) -> Self {
        Self {
            verbs: vec![verb.into()],
            group: Some(group.into()),
            resources: vec![resource.into()],
            namespaces: Vec::new(),
        }
    }

    fn covers(&self, asked: &Asked<'_>) -> bool {
        let listed =
            |list: &[String], value: &str| list.is_empty() || list.iter().any(|item| item == value || item == "*");
        asked.url.is_empty()
            && listed(&self.verbs, asked.verb)
            && self.group.as_deref().is_none_or(|group| group == "*" || group == asked.group)
            && listed(&self.resources, &asked.resource())
            && listed(&self.namespaces, asked.namespace)
    }
}

/// A question of access: to a resource, or to a path that is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked<'a> {
    pub(super) verb: &'a str,
    pub(super) group: &'a str,
    pub(super) plural: &'a str,
    pub(super) subresource: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    /// The path; empty for a resource.
    pub(super) url: &'a str,
}

impl<'a> Asked<'a> {
    /// The question behind a request. A field selector for one name asks for that name.
    pub(super) fn of(verb: &'a str, target: &'a Target, selected: &'a str) -> Self {
        // A namespace is in itself, so that a role there gives rights to it.
        let is_namespace = target.group.is_empty() && target.plural == "namespaces";
        Self {
            verb,
            group: &target.group,
            plural: &target.plural,
            subresource: &target.subresource,
            namespace: if is_namespace { &target.name } else { &target.namespace },
            name: if target.name.is_empty() { selected } else { &target.name },
            url: "",
        }
    }

    pub(super) fn resource(&self) -> String {
        if self.subresource.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}/{}", self.plural, self.subresource)
        }
    }
}

/// What was found out about a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) allowed: bool,
    /// What it rests on; for a refusal, what hindered the search for a right.
    pub(super) reason: String,
}

/// What is denied to whom, and whom the tokens stand for that the server itself has given away.
#[derive(Debug, Default)]
pub(super) struct Access {
    denied: BTreeMap<String, Vec<Deny>>,
    tokens: BTreeMap<String, (String, jiff::Timestamp)>,
}

impl Access {
    pub(super) fn deny(&mut self, user: &str, rule: Deny) {
        self.denied.entry(user.to_owned()).or_default().push(rule);
    }

    /// Notes whom a token stands for, and until when.
    pub(super) fn issue(&mut self, token: &str, user: &str, until: jiff::Timestamp) {
        self.tokens.insert(token.to_owned(), (user.to_owned(), until));
    }

    /// Whom a token stands for.
    pub(super) fn bearer(&self, token: &str, now: jiff::Timestamp) -> Option<User> {
        let (user, until) = self.tokens.get(token)?;
        (now < *until).then(|| User::named(user))
    }

    /// Whether anything is denied to a user.
    pub(super) fn denied(&self, user: &User) -> bool {
        self.denied.contains_key(&user.name)
    }

    /// Whether a user may do something.
    pub(super) fn decide(&self, store: &Store, user: &User, asked: &Asked<'_>) -> Decision {
        if self.denied.get(&user.name).is_some_and(|rules| rules.iter().any(|rule| rule.covers(asked))) {
            return Decision::default();
        }
        if user.is_master() {
            return Decision { allowed: true, reason: String::new() };
        }
        rbac::decide(store, user, asked)
    }

    /// Refuses what the user may not do, in the server's words.
    pub(super) fn check(&self, store: &Store, user: &User, asked: &Asked<'_>) -> Result<(), ApiError> {
        let decision = self.decide(store, user, asked);
        if decision.allowed {
            return Ok(());
        }
        let because = if decision.reason.is_empty() { String::new() } else { format!(": {}", decision.reason) };
        let (who, verb) = (&user.name, asked.verb);
        if !asked.url.is_empty() {
            let message = format!("forbidden: User {who:?} cannot {verb} path {:?}{because}", asked.url);
            return Err(ApiError::new(403, "Forbidden", message).with_empty_details());
        }
        let place = if asked.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", asked.namespace)
        };
        let detail = format!(
            "User {who:?} cannot {verb} resource {:?} in API group {:?} {place}{because}",
            asked.resource(),
            asked.group
        );
        Err(ApiError::forbidden(&Resource::new(asked.group, asked.plural), asked.name, &detail))
    }
}
