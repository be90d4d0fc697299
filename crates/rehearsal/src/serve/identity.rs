//! A certificate authority of one day's standing, and the server's certificate.

use std::{net::Ipv4Addr, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType};
use rustls::pki_types::PrivateKeyDer;

use super::ServeError;

/// What a server shows to its clients.
pub(super) struct Identity {
    /// The authority's certificate, for the kubeconfig.
    pub(super) authority: String,
    /// The server's side of TLS.
    pub(super) tls: Arc<rustls::ServerConfig>,
}

impl Identity {
    pub(super) fn new() -> Result<Self, ServeError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "rehearsal");
        let authority_key = KeyPair::generate().map_err(ServeError::Certificate)?;
        let authority = params.self_signed(&authority_key).map_err(ServeError::Certificate)?;
        let issuer = Issuer::new(params, authority_key);
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "kubernetes.default.svc".to_owned()])
            .map_err(ServeError::Certificate)?;
        params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
        let key = KeyPair::generate().map_err(ServeError::Certificate)?;
        let certificate = params.signed_by(&key, &issuer).map_err(ServeError::Certificate)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(ServeError::Tls)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .map_err(ServeError::Tls)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { authority: authority.pem(), tls: Arc::new(tls) })
    }
}
