//! What a client in this process holds: a token, and trust in a certificate authority. Both can grow old.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::UnixTime;
use rustls::{CertificateError, Error};

/// How long before and after the present the server's certificate is good, in the server's own time.
const CERTIFICATE_GOOD: SignedDuration = SignedDuration::from_hours(24);

/// Generations of the token and of the authority's certificate that a client was made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Session {
    pub(crate) token: u64,
    pub(crate) trust: u64,
}

/// What the server accepts, and what a new client is given.
#[derive(Default)]
pub(super) struct Doors {
    accepted: Session,
    given: Session,
    /// How far the server's clock is ahead of its clients'.
    pub(super) skew: SignedDuration,
}

impl Doors {
    pub(super) fn given(&self) -> Session {
        self.given
    }

    pub(super) fn expire_tokens(&mut self, renewable: bool) {
        self.accepted.token += 1;
        if renewable {
            self.given.token = self.accepted.token;
        }
    }

    pub(super) fn rotate_certificates(&mut self, renewable: bool) {
        self.accepted.trust += 1;
        if renewable {
            self.given.trust = self.accepted.trust;
        }
    }

    /// Why a client with this session cannot even connect.
    pub(super) fn handshake(&self, session: Session, now: Timestamp) -> Result<(), std::io::Error> {
        let error = if session.trust < self.accepted.trust {
            CertificateError::UnknownIssuer
        } else if self.skew.abs() > CERTIFICATE_GOOD {
            let unix = |time: Timestamp| {
                UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(time.as_second()).unwrap_or(0)))
            };
            let moved = |by: SignedDuration| now.checked_add(by).unwrap_or(now);
            let time = unix(moved(-self.skew));
            if self.skew.is_positive() {
                CertificateError::NotValidYetContext { time, not_before: unix(moved(-CERTIFICATE_GOOD)) }
            } else {
                CertificateError::ExpiredContext { time, not_after: unix(moved(CERTIFICATE_GOOD)) }
            }
        } else {
            return Ok(());
        };
        Err(std::io::Error::new(std::io::ErrorKind::InvalidData, Error::InvalidCertificate(error)))
    }

    /// Whether the server knows the token.
    pub(super) fn knows(&self, session: Session) -> bool {
        session.token >= self.accepted.token
    }
}
