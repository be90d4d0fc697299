//! etcd, the API server and its controllers.

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};
use tokio::net::TcpStream;

use super::parts::Part;
use super::pki::API_PORT;
use super::shared::{Shared, until};

const ETCD: &str = "http://127.0.0.1:2379";
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn etcd(shared: &Shared) -> Result<()> {
    let part = Part::new("etcd", shared.built.binary("etcd")?)
        .flag("data-dir", shared.dir.join("etcd"))
        .flag("listen-client-urls", ETCD)
        .flag("advertise-client-urls", ETCD)
        .flag("listen-peer-urls", "http://127.0.0.1:2380")
        .flag("initial-advertise-peer-urls", "http://127.0.0.1:2380")
        .flag("initial-cluster", "default=http://127.0.0.1:2380")
        // Data that need not survive a crash of the machine need not wait for its disk.
        .arg("--unsafe-no-fsync")
        .flag("log-level", "warn");
    shared.parts.start(part);
    until("etcd", PATIENCE, async || Ok(TcpStream::connect(("127.0.0.1", 2379)).await.ok().map(drop))).await
}

pub(super) async fn api_server(shared: &Shared) -> Result<()> {
    let pki = shared.dir.join("pki");
    let file = |name: &str| pki.join(name);
    let part = Part::new("kube-apiserver", shared.built.binary("kube-apiserver")?)
        .flag("etcd-servers", ETCD)
        .flag("secure-port", API_PORT.to_string())
        .flag("bind-address", "127.0.0.1")
        .flag("advertise-address", "127.0.0.1")
        .flag("tls-cert-file", file("apiserver.crt"))
        .flag("tls-private-key-file", file("apiserver.key"))
        .flag("client-ca-file", file("ca.crt"))
        .flag("token-auth-file", file("tokens.csv"))
        .flag("authorization-mode", "Node,RBAC")
        .flag("service-account-issuer", "https://kubernetes.default.svc")
        .flag("service-account-key-file", file("service-accounts.pub"))
        .flag("service-account-signing-key-file", file("service-accounts.key"))
        .flag("service-cluster-ip-range", "10.96.0.0/16")
        .arg("--allow-privileged")
        // Pods are made before their account has a token.
        .flag("disable-admission-plugins", "ServiceAccount")
        .flag("requestheader-client-ca-file", file("ca.crt"))
        .flag("requestheader-allowed-names", "front-proxy")
        .flag("requestheader-username-headers", "X-Remote-User")
        .flag("requestheader-group-headers", "X-Remote-Group")
        .flag("requestheader-extra-headers-prefix", "X-Remote-Extra-")
        .flag("proxy-client-cert-file", file("front-proxy.crt"))
        .flag("proxy-client-key-file", file("front-proxy.key"));
    shared.parts.start(part);
    let client = crate::client::connect(&shared.dir.kubeconfig_inside()).await?;
    until("the API server", PATIENCE, async || {
        let request = http::Request::get("/readyz").body(Vec::new())?;
        Ok(client.request_text(request).await.map(|_| Some(()))?)
    })
    .await
}

/// Controllers and scheduler: they wait for what they need by themselves.
pub(super) fn controllers(shared: &Shared) -> Result<()> {
    let pki = shared.dir.join("pki");
    let kubeconfig = shared.dir.kubeconfig_inside();
    shared.parts.start(
        Part::new("kube-controller-manager", shared.built.binary("kube-controller-manager")?)
            .flag("kubeconfig", &kubeconfig)
            .flag("service-account-private-key-file", pki.join("service-accounts.key"))
            .flag("root-ca-file", pki.join("ca.crt"))
            .flag("bind-address", "127.0.0.1")
            .flag("leader-elect", "false")
            .flag("controllers", "*,-nodeipam,-route,-cloud-node-lifecycle"),
    );
    shared.parts.start(
        Part::new("kube-scheduler", shared.built.binary("kube-scheduler")?)
            .flag("kubeconfig", &kubeconfig)
            .flag("bind-address", "127.0.0.1")
            .flag("leader-elect", "false"),
    );
    Ok(())
}

/// The controller of machine sets, which ends when its CRDs are not there yet.
pub(super) fn machines(shared: &Shared) -> Result<()> {
    let kubeconfig = shared.dir.kubeconfig_inside();
    shared.parts.start(
        Part::new("machineset", shared.built.binary("machineset")?)
            .env("KUBECONFIG", kubeconfig.to_string_lossy())
            .flag("namespace", "openshift-machine-api")
            .flag("webhook-enabled", "false")
            .flag("metrics-bind-address", "127.0.0.1:18082")
            .flag("health-addr", "127.0.0.1:18083")
            .arg("--logtostderr"),
    );
    Ok(())
}

/// What plays nodes and their kubelets.
pub(super) fn nodes(shared: &Shared) -> Result<()> {
    let pki = shared.dir.join("pki");
    let kubeconfig = shared.dir.kubeconfig_inside();
    shared.parts.start(
        Part::new("kwok", shared.built.binary("kwok")?)
            .env("HOME", shared.dir.path().to_string_lossy())
            .flag("kubeconfig", &kubeconfig)
            .arg("--manage-all-nodes")
            .flag("enable-crds", "Stage,ClusterLogs,Logs,Metric")
            .flag("node-ip", "127.0.0.1")
            .flag("node-port", "10247")
            .flag("tls-cert-file", pki.join("apiserver.crt"))
            .flag("tls-private-key-file", pki.join("apiserver.key"))
            // Without leases nodes turn NotReady every 45 s, and operators that had succeeded fail.
            .flag("node-lease-duration-seconds", "40"),
    );
    Ok(())
}

/// The API server comes up before its controllers do anything; who makes pods needs their account.
pub(super) async fn accounts_ready(client: &Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    until("the default service account", PATIENCE, async || Ok(accounts.get_opt("default").await?.map(drop))).await
}
