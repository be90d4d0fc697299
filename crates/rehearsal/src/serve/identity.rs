//! A certificate authority of one day's standing, the server's certificate and those of its users.

use std::{net::Ipv4Addr, sync::Arc};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};
use rustls::{RootCertStore, pki_types::PrivateKeyDer, server::WebPkiClientVerifier};

use super::ServeError;
use crate::api::User;

/// What a user shows to the server.
pub(super) struct Pass {
    /// The certificate as it goes over the wire.
    pub(super) der: Vec<u8>,
    /// The certificate, for the kubeconfig.
    pub(super) certificate: String,
    /// Its key, for the kubeconfig.
    pub(super) key: String,
}

/// What a server shows to its clients.
pub(super) struct Identity {
    /// The authority's certificate, for the kubeconfig.
    pub(super) authority: String,
    /// The server's side of TLS.
    pub(super) tls: Arc<rustls::ServerConfig>,
    issuer: Issuer<'static, KeyPair>,
}

impl Identity {
    pub(super) fn new() -> Result<Self, ServeError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "rehearsal");
        let authority_key = KeyPair::generate().map_err(ServeError::Certificate)?;
        let authority = params.self_signed(&authority_key).map_err(ServeError::Certificate)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).map_err(ServeError::Tls)?;
        let issuer = Issuer::new(params, authority_key);
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "kubernetes.default.svc".to_owned()])
            .map_err(ServeError::Certificate)?;
        params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
        let key = KeyPair::generate().map_err(ServeError::Certificate)?;
        let certificate = params.signed_by(&key, &issuer).map_err(ServeError::Certificate)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .map_err(|error| ServeError::Tls(rustls::Error::General(error.to_string())))?;
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(ServeError::Tls)?
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .map_err(ServeError::Tls)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { authority: authority.pem(), tls: Arc::new(tls), issuer })
    }

    /// A user's certificate: the common name is the user, each organization a group.
    pub(super) fn pass(&self, user: &User) -> Result<Pass, ServeError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user.name.clone());
        // Everybody who has shown something is in the group of those who have.
        for group in user.groups.iter().filter(|group| *group != "system:authenticated") {
            params.distinguished_name.push(DnType::OrganizationName, group.clone());
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().map_err(ServeError::Certificate)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(ServeError::Certificate)?;
        Ok(Pass { der: certificate.der().to_vec(), certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
