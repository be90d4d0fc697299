//! What can go wrong between us and the API server, and what to do about it.

mod answer;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use toolbox_engine::{Cause, Exit, FailureVerdict, ObjectRef, Why};

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// The other manager, as the server names it.
    pub manager: String,
    /// The field: `.spec.replicas`.
    pub field: String,
}

/// One thing that is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field: `spec.operator.deployGFD`; empty for the whole object.
    pub field: String,
    /// What is wrong.
    pub message: String,
}

/// What can go wrong. Keeps the server's code, reason and message, nothing else of the library's error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// The kind is not (or not yet, or no longer) part of the API.
    #[error("`{}` is not served by this cluster", .object.kind)]
    NotServed {
        /// What was asked for.
        object: ObjectRef,
    },
    /// The object, or the namespace it should be in, does not exist.
    #[error("does not exist")]
    NotFound {
        /// What does not exist.
        object: ObjectRef,
    },
    /// An object of that name is there already.
    #[error("exists already")]
    AlreadyExists {
        /// It.
        object: ObjectRef,
    },
    /// The namespace is being deleted, so nothing can be made in it.
    #[error("namespace `{namespace}` is being deleted")]
    Terminating {
        /// What should have been made.
        object: ObjectRef,
        /// The namespace.
        namespace: String,
    },
    /// Not allowed.
    #[error("{}", forbidden(.user.as_deref(), .verb, .message))]
    Forbidden {
        /// What was asked for.
        object: ObjectRef,
        /// What was to be done to it.
        verb: &'static str,
        /// Who is not allowed, if the server said so.
        user: Option<String>,
        /// The server's words.
        message: String,
    },
    /// Somebody else owns the fields, or changed the object meanwhile.
    #[error("{}", conflict(.fields, .message))]
    Conflict {
        /// What was to be changed.
        object: ObjectRef,
        /// Who owns which field.
        fields: Vec<FieldConflict>,
        /// The server's words.
        message: String,
    },
    /// The server refuses the object's content.
    #[error("is refused: {}", invalid(.causes, .message))]
    Invalid {
        /// What was to be made or changed.
        object: ObjectRef,
        /// What is wrong, field by field.
        causes: Vec<FieldError>,
        /// The server's words.
        message: String,
    },
    /// Nothing answers, or only errors that say "not now".
    #[error("the API server is not reachable since {since}: {last}", since = stamp(*.since))]
    Unreachable {
        /// URL of the API server, with the proxy if there is one.
        server: String,
        /// Since when.
        since: Timestamp,
        /// The last thing seen.
        last: String,
    },
    /// Told to come back later until the patience was used up.
    #[error("the API server throttles our requests since {since}", since = stamp(*.since))]
    Throttled {
        /// URL of the API server.
        server: String,
        /// Since when.
        since: Timestamp,
    },
    /// The credentials are not accepted, also after they were read again.
    #[error("not authenticated{}: {message}", .user.as_deref().map(|user| format!(" as `{user}`")).unwrap_or_default())]
    Unauthorized {
        /// URL of the API server.
        server: String,
        /// The user of the kubeconfig.
        user: Option<String>,
        /// The server's, or the credential plugin's, words.
        message: String,
    },
    /// The server's certificate is not trusted.
    #[error("the API server's certificate is not accepted: {message}")]
    Certificate {
        /// URL of the API server.
        server: String,
        /// What is wrong with it.
        message: String,
    },
    /// The server's certificate is not valid yet, or not any more, by this machine's clock.
    #[error("the certificate of {server} is not valid at this machine's time: {message}")]
    OutOfDate {
        /// URL of the API server.
        server: String,
        /// Which of both, and since or until when.
        message: String,
    },
    /// The version or the continuation asked for is too old.
    #[error("the version asked for is no longer kept: {message}")]
    Expired {
        /// What was asked for.
        object: ObjectRef,
        /// The server's words.
        message: String,
    },
    /// Anything else that the server says.
    #[error("{}", other(*.code, .reason, .message))]
    Other {
        /// What was asked for.
        object: ObjectRef,
        /// The HTTP status.
        code: u16,
        /// The server's one word.
        reason: String,
        /// The server's words.
        message: String,
    },
}

fn stamp(at: Timestamp) -> String {
    at.strftime("%H:%M:%SZ").to_string()
}

fn forbidden(user: Option<&str>, verb: &str, message: &str) -> String {
    match user {
        Some(user) => format!("`{user}` may not {verb} it"),
        None if message.is_empty() => format!("not allowed to {verb} it"),
        None => format!("not allowed to {verb} it: {message}"),
    }
}

fn conflict(fields: &[FieldConflict], message: &str) -> String {
    if fields.is_empty() {
        return format!("was changed by somebody else: {message}");
    }
    let fields: Vec<String> =
        fields.iter().map(|conflict| format!("`{}` owns {}", conflict.manager, conflict.field)).collect();
    fields.join(", ")
}

fn invalid(causes: &[FieldError], message: &str) -> String {
    if causes.is_empty() {
        return message.to_owned();
    }
    let causes: Vec<String> =
        causes
            .iter()
            .map(|cause| {
                if cause.field.is_empty() {
                    cause.message.clone()
                } else {
                    format!("{}: {}", cause.field, cause.message)
                }
            })
            .collect();
    causes.join("; ")
}

fn other(code: u16, reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", "") => format!("the API server answered {code}"),
        ("", message) => format!("the API server answered {code}: {message}"),
        (reason, "") => format!("the API server answered {code} {reason}"),
        (reason, message) => format!("the API server answered {code} {reason}: {message}"),
    }
}

impl ClusterError {
    /// Whether the kind is not part of the API.
    pub fn is_not_served(&self) -> bool {
        matches!(self, ClusterError::NotServed { .. })
    }

    /// Whether the object, its namespace or its kind is not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, ClusterError::NotServed { .. } | ClusterError::NotFound { .. })
    }

    /// Whether the cluster itself is the trouble and not what was asked of it.
    pub fn is_about_access(&self) -> bool {
        matches!(
            self,
            ClusterError::Unreachable { .. }
                | ClusterError::Throttled { .. }
                | ClusterError::Unauthorized { .. }
                | ClusterError::Certificate { .. }
                | ClusterError::OutOfDate { .. }
                | ClusterError::Forbidden { .. }
        )
    }

    /// What it is about.
    pub fn object(&self) -> ObjectRef {
        match self {
            ClusterError::NotServed { object }
            | ClusterError::NotFound { object }
            | ClusterError::AlreadyExists { object }
            | ClusterError::Terminating { object, .. }
            | ClusterError::Forbidden { object, .. }
            | ClusterError::Conflict { object, .. }
            | ClusterError::Invalid { object, .. }
            | ClusterError::Expired { object, .. }
            | ClusterError::Other { object, .. } => object.clone(),
            ClusterError::Unreachable { server, .. }
            | ClusterError::Throttled { server, .. }
            | ClusterError::Unauthorized { server, .. }
            | ClusterError::Certificate { server, .. }
            | ClusterError::OutOfDate { server, .. } => ObjectRef::thing("server", server),
        }
    }
}

impl Cause for ClusterError {
    fn code(&self) -> &'static str {
        match self {
            ClusterError::NotServed { .. } => "kind-not-served",
            ClusterError::NotFound { .. } => "not-found",
            ClusterError::AlreadyExists { .. } => "already-exists",
            ClusterError::Terminating { .. } => "namespace-terminating",
            ClusterError::Forbidden { .. } => "forbidden",
            ClusterError::Conflict { .. } => "conflict",
            ClusterError::Invalid { .. } => "invalid-object",
            ClusterError::Unreachable { .. } => "api-unreachable",
            ClusterError::Throttled { .. } => "api-throttled",
            ClusterError::Unauthorized { .. } => "not-authenticated",
            ClusterError::Certificate { .. } => "certificate-not-trusted",
            ClusterError::OutOfDate { .. } => "certificate-out-of-date",
            ClusterError::Expired { .. } => "version-expired",
            ClusterError::Other { .. } => "api-error",
        }
    }

    fn text(&self) -> String {
        self.to_string()
    }

    fn next(&self) -> String {
        match self {
            ClusterError::NotServed { object } => format!(
                "check that the cluster has what defines {} ({}): oc api-resources",
                object.kind, object.api_version
            ),
            ClusterError::NotFound { object } => {
                format!("check the name, or make {object} first")
            }
            ClusterError::AlreadyExists { object } => format!(
                "look at it (tbx why {}), then delete it or choose another name",
                object.as_argument()
            ),
            ClusterError::Terminating { namespace, .. } => format!(
                "wait until it is gone, or see what holds it: tbx why Namespace/{namespace}"
            ),
            ClusterError::Forbidden { .. } => {
                "use an account that may do this, or ask for the right".to_owned()
            }
            ClusterError::Conflict { fields, .. } if fields.is_empty() => {
                "run the command again".to_owned()
            }
            ClusterError::Conflict { .. } => {
                "let the other manager give the field up, or take it over with --force-conflicts"
                    .to_owned()
            }
            ClusterError::Invalid { .. } => "correct the fields named above".to_owned(),
            ClusterError::Unreachable { .. } => {
                "check that the API server is up and that this machine reaches it, then run the command again".to_owned()
            }
            ClusterError::Throttled { .. } => "run the command again later".to_owned(),
            ClusterError::Unauthorized { .. } => {
                "log in again (oc login), or renew the credentials of the kubeconfig".to_owned()
            }
            ClusterError::Certificate { .. } => {
                "put the certificate of the authority that signed it into the kubeconfig's certificate-authority-data; the server's own certificate alone is not enough".to_owned()
            }
            ClusterError::OutOfDate { .. } => {
                "check this machine's clock (date -u); if it is right, the cluster's certificate has to be renewed".to_owned()
            }
            ClusterError::Expired { .. } => "run the command again".to_owned(),
            ClusterError::Other { .. } => "see the API server's answer above".to_owned(),
        }
    }

    fn verdict(&self) -> FailureVerdict {
        match self {
            ClusterError::NotServed { .. }
            | ClusterError::NotFound { .. }
            | ClusterError::AlreadyExists { .. }
            | ClusterError::Forbidden { .. }
            | ClusterError::Conflict { .. }
            | ClusterError::Invalid { .. }
            | ClusterError::Unauthorized { .. }
            | ClusterError::Certificate { .. }
            | ClusterError::OutOfDate { .. } => FailureVerdict::Configuration,
            ClusterError::Terminating { .. }
            | ClusterError::Unreachable { .. }
            | ClusterError::Throttled { .. }
            | ClusterError::Expired { .. }
            | ClusterError::Other { .. } => FailureVerdict::Infrastructure,
        }
    }

    fn exit(&self) -> Exit {
        match self {
            ClusterError::Forbidden { .. }
            | ClusterError::Unreachable { .. }
            | ClusterError::Throttled { .. }
            | ClusterError::Unauthorized { .. }
            | ClusterError::Certificate { .. }
            | ClusterError::OutOfDate { .. } => Exit::Access,
            ClusterError::Invalid { .. } => Exit::Configuration,
            ClusterError::NotServed { .. }
            | ClusterError::NotFound { .. }
            | ClusterError::AlreadyExists { .. }
            | ClusterError::Terminating { .. }
            | ClusterError::Conflict { .. }
            | ClusterError::Expired { .. }
            | ClusterError::Other { .. } => Exit::Failed,
        }
    }
}

impl From<ClusterError> for Why {
    fn from(error: ClusterError) -> Self {
        let why = Why::new(error.object(), &error);
        match error {
            ClusterError::Forbidden { message, user, .. } if user.is_some() => why.with("the API server says", message),
            _ => why,
        }
    }
}
