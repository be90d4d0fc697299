//! Why one attempt failed.

use std::time::Duration;

use bytes::Bytes;
use kube::client::AuthError;
use toolbox_engine::ObjectRef;

use super::pause;
use crate::error::ClusterError;
use crate::undeclared;

/// One attempt that failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// No answer: refused, reset, cut, too slow.
    Lost(String),
    /// The server's certificate is not trusted.
    Certificate(String),
    /// The server's certificate is not valid yet, or not any more, by our clock.
    OutOfDate(String),
    /// The credentials could not be had: plugin, token file.
    Credentials(String),
    /// An answer that says no.
    Said { code: u16, body: Bytes, retry_after: Option<Duration> },
}

impl Failure {
    /// Whether the same request may do better in a moment.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Failure::Lost(_) => true,
            // Servers of some versions say this with 500.
            Failure::Said { code: 500, body, .. } if undeclared::is_about(&String::from_utf8_lossy(body)) => false,
            Failure::Said { code, .. } => matches!(code, 408 | 429 | 500 | 502 | 503 | 504),
            Failure::Certificate(_) | Failure::OutOfDate(_) | Failure::Credentials(_) => false,
        }
    }

    /// The pause before the next attempt: what the server asks for, but neither none at all (a server that says so would
    /// be asked without end) nor more than `most`; otherwise our own schedule.
    pub(crate) fn wait(&self, attempts: u32, most: Duration) -> Duration {
        match self {
            Failure::Said { retry_after: Some(asked), .. } => (*asked).max(pause(1)).min(most),
            _ => pause(attempts).min(most),
        }
    }

    /// Whether the server has certainly not done anything.
    pub(super) fn is_untouched(&self) -> bool {
        matches!(self, Failure::Said { code: 429, .. })
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Failure::Lost(text)
            | Failure::Certificate(text)
            | Failure::OutOfDate(text)
            | Failure::Credentials(text) => text.clone(),
            Failure::Said { code, body, .. } => {
                let object = ObjectRef::thing("server", "");
                match ClusterError::of_answer(*code, body, "get", &object) {
                    ClusterError::Other { message, .. } if !message.is_empty() => {
                        format!("it answers {code}: {message}")
                    }
                    _ => format!("it answers {code}"),
                }
            }
        }
    }
}

/// Whether newer credentials, or a newer configuration, may help.
pub(super) fn is_refused(failure: &Failure) -> bool {
    matches!(failure, Failure::Said { code: 401, .. } | Failure::Credentials(_) | Failure::Certificate(_))
}

/// The causes of an error, outermost first.
fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    // A source that points at itself must not hang us.
    std::iter::successors(Some(error), |error| error.source()).take(16)
}

/// What lies at the bottom of an error.
pub(crate) fn root(error: &(dyn std::error::Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// What TLS says, which the standard library's errors hide from their chain.
fn of_tls<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.downcast_ref().or_else(|| inner?.downcast_ref())
}

fn is_out_of_date(error: &rustls::Error) -> bool {
    use rustls::CertificateError as Trouble;
    matches!(
        error,
        rustls::Error::InvalidCertificate(
            Trouble::Expired
                | Trouble::ExpiredContext { .. }
                | Trouble::NotValidYet
                | Trouble::NotValidYetContext { .. }
        )
    )
}

pub(super) fn lost(error: &kube::Error) -> Failure {
    if let Some(credentials) = chain(error).find_map(|error| error.downcast_ref::<AuthError>()) {
        return Failure::Credentials(crate::connect::credentials_trouble(credentials, None));
    }
    let root = root(error);
    if chain(error).filter_map(of_tls).any(is_out_of_date) {
        return Failure::OutOfDate(root);
    }
    if chain(error).any(|error| error.to_string().contains("invalid peer certificate")) {
        return Failure::Certificate(root);
    }
    Failure::Lost(root)
}
