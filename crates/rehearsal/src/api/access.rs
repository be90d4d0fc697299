//! Users and what they may not do.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{route::Target, status::ApiError};
use crate::store::Resource;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
}

impl User {
    /// The cluster's administrator, whom nothing is denied.
    pub fn admin() -> Self {
        Self { name: "system:admin".into(), groups: vec!["system:masters".into(), "system:authenticated".into()] }
    }

    /// Another user.
    pub fn named(name: &str) -> Self {
        Self { name: name.into(), groups: vec!["system:authenticated".into()] }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"username": self.name, "groups": self.groups})
    }
}

/// Something that a user may not do. Empty fields stand for everything.
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
        listed(&self.verbs, asked.verb)
            && self.group.as_deref().is_none_or(|group| group == "*" || group == asked.group)
            && listed(&self.resources, &asked.resource())
            && listed(&self.namespaces, asked.namespace)
    }
}

/// A question of access.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked<'a> {
    pub(super) verb: &'a str,
    pub(super) group: &'a str,
    pub(super) plural: &'a str,
    pub(super) subresource: &'a str,
    pub(super) namespace: &'a str,
}

impl Asked<'_> {
    fn resource(&self) -> String {
        if self.subresource.is_empty() {
            self.plural.to_owned()
        } else {
            format!("{}/{}", self.plural, self.subresource)
        }
    }
}

/// What is denied to whom.
#[derive(Debug, Default)]
pub(super) struct Access(BTreeMap<String, Vec<Deny>>);

impl Access {
    pub(super) fn deny(&mut self, user: &str, rule: Deny) {
        self.0.entry(user.to_owned()).or_default().push(rule);
    }

    pub(super) fn allows(&self, user: &User, asked: &Asked<'_>) -> bool {
        !self.0.get(&user.name).is_some_and(|rules| rules.iter().any(|rule| rule.covers(asked)))
    }

    /// What is denied to a user.
    pub(super) fn denied(&self, user: &User) -> bool {
        self.0.contains_key(&user.name)
    }

    /// Refuses what the user may not do, in the server's words.
    pub(super) fn check(&self, user: &User, verb: &str, target: &Target) -> Result<(), ApiError> {
        let asked = Asked {
            verb,
            group: &target.group,
            plural: &target.plural,
            subresource: &target.subresource,
            namespace: &target.namespace,
        };
        if self.allows(user, &asked) {
            return Ok(());
        }
        let place = if target.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", target.namespace)
        };
        let detail = format!(
            "User {:?} cannot {verb} resource {:?} in API group {:?} {place}",
            user.name,
            asked.resource(),
            target.group
        );
        Err(ApiError::forbidden(&Resource::new(target.group.clone(), target.plural.clone()), &target.name, &detail))
    }
}
