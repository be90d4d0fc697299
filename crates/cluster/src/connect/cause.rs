//! What can be wrong before there is a connection.

use toolbox_engine::{Cause, Exit, FailureVerdict};

/// Why no configuration can be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConnectCause {
    /// Nothing is named, and nothing is where one looks.
    Nothing { looked_at: Vec<String> },
    /// Files are named and none of them is there.
    NoneThere { files: Vec<String> },
    /// A file is there and cannot be read.
    Unreadable { problem: String },
    /// A file is there and is no kubeconfig.
    Malformed { problem: String },
    /// The context asked for is not in it.
    UnknownContext { known: Vec<String> },
    /// No context is asked for, and the file has no current one.
    NoContext { known: Vec<String> },
    /// What the context names is not in the file.
    Dangling { what: &'static str, name: String },
    /// A value in it cannot be used.
    BadValue { field: &'static str, problem: String },
    /// The proxy speaks something that we do not.
    Proxy { scheme: String },
    /// Asked to use the pod's account, and there is none.
    NotInCluster { problem: String },
    /// The credentials cannot be had.
    Credentials { problem: String, hint: Option<String> },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl Cause for ConnectCause {
    fn code(&self) -> &'static str {
        match self {
            ConnectCause::Nothing { .. } => "no-kubeconfig",
            ConnectCause::NoneThere { .. } => "kubeconfig-missing",
            ConnectCause::Unreadable { .. } => "kubeconfig-unreadable",
            ConnectCause::Malformed { .. } => "kubeconfig-malformed",
            ConnectCause::UnknownContext { .. } => "unknown-context",
            ConnectCause::NoContext { .. } => "no-context",
            ConnectCause::Dangling { .. } => "kubeconfig-incomplete",
            ConnectCause::BadValue { .. } => "kubeconfig-value",
            ConnectCause::Proxy { .. } => "proxy-unsupported",
            ConnectCause::NotInCluster { .. } => "not-in-cluster",
            ConnectCause::Credentials { .. } => "credentials",
        }
    }

    fn text(&self) -> String {
        match self {
            ConnectCause::Nothing { looked_at } => {
                format!("no kubeconfig is named and none is found (looked at {})", list(looked_at))
            }
            ConnectCause::NoneThere { files } => match &files[..] {
                [] => "names no file".to_owned(),
                [file] => format!("{file} does not exist"),
                files => format!("none of its files exists: {}", list(files)),
            },
            ConnectCause::Unreadable { problem } => format!("cannot be read: {problem}"),
            ConnectCause::Malformed { problem } => format!("is no kubeconfig: {problem}"),
            ConnectCause::UnknownContext { known } => {
                format!("there is no such context; there are: {}", list(known))
            }
            ConnectCause::NoContext { known } if known.is_empty() => "has no context".to_owned(),
            ConnectCause::NoContext { known } => {
                format!("has no current context; there are: {}", list(known))
            }
            ConnectCause::Dangling { what, name } => {
                format!("its context names the {what} `{name}`, which it does not define")
            }
            ConnectCause::BadValue { field, problem } => format!("its {field} cannot be used: {problem}"),
            ConnectCause::Proxy { scheme } => {
                format!("a proxy of the kind `{scheme}` is not supported")
            }
            ConnectCause::NotInCluster { problem } => {
                format!("the pod's service account cannot be used: {problem}")
            }
            ConnectCause::Credentials { problem, .. } => problem.clone(),
        }
    }

    fn next(&self) -> String {
        match self {
            ConnectCause::Nothing { .. } => "name one with --kubeconfig FILE or KUBECONFIG".to_owned(),
            ConnectCause::NoneThere { .. } => {
                "correct the path, or unset it to use ~/.kube/config; no other source is tried".to_owned()
            }
            ConnectCause::Unreadable { .. }
            | ConnectCause::Malformed { .. }
            | ConnectCause::Dangling { .. }
            | ConnectCause::BadValue { .. } => {
                "correct the file, or name another one with --kubeconfig FILE".to_owned()
            }
            ConnectCause::UnknownContext { known } | ConnectCause::NoContext { known } if known.is_empty() => {
                "log in, or name another file with --kubeconfig FILE".to_owned()
            }
            ConnectCause::UnknownContext { .. } | ConnectCause::NoContext { .. } => {
                "choose one of them with --context NAME".to_owned()
            }
            ConnectCause::Proxy { .. } => "use a proxy of the kind http, https or socks5".to_owned(),
            ConnectCause::NotInCluster { .. } => "name a kubeconfig with --kubeconfig FILE or KUBECONFIG".to_owned(),
            ConnectCause::Credentials { hint, .. } => match hint {
                Some(hint) => format!("install the plugin: {hint}"),
                None => "log in again, or correct the user's entry in the kubeconfig".to_owned(),
            },
        }
    }

    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }

    fn exit(&self) -> Exit {
        match self {
            ConnectCause::Credentials { .. } => Exit::Access,
            _ => Exit::Configuration,
        }
    }
}
