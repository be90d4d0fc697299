//! Certificates, tokens and kubeconfig files of one stack.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use serde_json::json;

use crate::state::Dir;

/// Bearer token of the administrator, for programs that need one.
pub(crate) const ADMIN_TOKEN: &str = "sha256~stack-admin-Zk3vT9";
const NO_RIGHTS_TOKEN: &str = "stack-no-rights";
/// Port of the API server in its own network.
pub(super) const API_PORT: u16 = 6443;

/// Writes everything below `dir/pki`, and the kubeconfig files.
pub(super) fn write(dir: &Dir, gate_port: u16) -> Result<()> {
    let pki = dir.join("pki");
    fs::create_dir_all(&pki)?;
    let save =
        |name: &str, text: String| fs::write(pki.join(name), text).with_context(|| format!("cannot write `{name}`"));

    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "toolbox-stack");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    save("ca.crt", ca.pem())?;

    let issue = |name: &str, organization: Option<&str>, usage, hosts: Vec<SanType>| -> Result<(String, String)> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(organization) = organization {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.subject_alt_names = hosts;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &ca)?.pem(), key.serialize_pem()))
    };
    let hosts = vec![
        SanType::IpAddress([127, 0, 0, 1].into()),
        SanType::IpAddress([10, 96, 0, 1].into()),
        SanType::DnsName("localhost".try_into()?),
    ];
    let client = || ExtendedKeyUsagePurpose::ClientAuth;
    let (certificate, key) = issue("kube-apiserver", None, ExtendedKeyUsagePurpose::ServerAuth, hosts)?;
    save("apiserver.crt", certificate)?;
    save("apiserver.key", key)?;
    let (certificate, key) = issue("front-proxy", None, client(), Vec::new())?;
    save("front-proxy.crt", certificate)?;
    save("front-proxy.key", key)?;
    let (admin, admin_key) = issue("admin", Some("system:masters"), client(), Vec::new())?;
    save("admin.crt", admin.clone())?;
    save("admin.key", admin_key.clone())?;

    // The API server takes the public half in a file of its own.
    let accounts = KeyPair::generate()?;
    save("service-accounts.key", accounts.serialize_pem())?;
    save("service-accounts.pub", accounts.public_key_pem())?;
    save(
        "tokens.csv",
        format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n{NO_RIGHTS_TOKEN},nobody,nobody,\"nobodies\"\n"),
    )?;

    let admin = json!({
        "client-certificate-data": encode(&admin),
        "client-key-data": encode(&admin_key),
    });
    let nobody = json!({ "token": NO_RIGHTS_TOKEN });
    let files = [
        (dir.kubeconfig_inside(), API_PORT, &admin),
        (dir.kubeconfig(), gate_port, &admin),
        (dir.kubeconfig_without_rights(), gate_port, &nobody),
    ];
    for (path, port, user) in files {
        kubeconfig(&path, port, &ca.pem(), user)?;
    }
    Ok(())
}

/// Where a pod finds its account.
pub(crate) const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The folder that a pod of this namespace would find at [`ACCOUNT`]. Its token is the administrator's.
pub(crate) fn account(dir: &Dir, namespace: &str) -> Result<PathBuf> {
    let account = dir.join("accounts").join(namespace);
    fs::create_dir_all(&account)?;
    fs::write(account.join("token"), ADMIN_TOKEN)?;
    fs::write(account.join("namespace"), namespace)?;
    fs::copy(dir.join("pki").join("ca.crt"), account.join("ca.crt"))?;
    Ok(account)
}

fn encode(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn kubeconfig(path: &Path, port: u16, ca: &str, user: &serde_json::Value) -> Result<()> {
    // JSON is YAML, and every client reads it.
    let text = serde_json::to_string_pretty(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "stack",
        "contexts": [{ "name": "stack", "context": { "cluster": "stack", "user": "stack" } }],
        "clusters": [{ "name": "stack", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority-data": encode(ca),
        }}],
        "users": [{ "name": "stack", "user": user }],
    }))?;
    let temporary = path.with_extension("new");
    fs::write(&temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .with_context(|| format!("cannot write `{}`", path.display()))
}
