//! The operator lifecycle manager: operator, catalog operator, package server, one server per catalog.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use kube::api::{Api, DynamicObject};

use super::objects::resource;
use super::parts::Part;
use super::pki::{self, API_PORT};
use super::root::PrivateRoot;
use super::shared::{Shared, until};
use crate::catalog::Catalog;

const NAMESPACE: &str = "openshift-operator-lifecycle-manager";
/// The namespace whose catalogs serve Subscriptions everywhere.
const GLOBAL: &str = "openshift-marketplace";
const PATIENCE: Duration = Duration::from_secs(90);

pub(super) fn start(shared: &Shared, catalogs: &[Catalog]) -> Result<()> {
    let kubeconfig = shared.dir.kubeconfig_inside().to_string_lossy().into_owned();
    let tmp = shared.dir.join("tmp").to_string_lossy().into_owned();
    for catalog in catalogs {
        let name = format!("catalog/{}", catalog.name);
        shared.parts.start(
            Part::new(&name, shared.built.binary("opm")?)
                .env("TMPDIR", &tmp)
                .env("HOME", &tmp)
                .arg("serve")
                .arg(&catalog.dir)
                .arg("--port")
                .arg(catalog.port.to_string())
                .arg("--pprof-addr=127.0.0.1:0")
                .flag("termination-log", shared.dir.join("tmp").join(format!("{}.end", catalog.name))),
        );
    }
    shared.parts.start(
        Part::new("olm-catalog", shared.built.binary("catalog")?)
            .env("TMPDIR", &tmp)
            .flag("kubeconfig", &kubeconfig)
            .flag("namespace", GLOBAL)
            .flag("writeStatusName", ""),
    );
    shared.parts.start(
        Part::new("olm-operator", shared.built.binary("olm")?)
            .env("KUBECONFIG", &kubeconfig)
            .env("OPERATOR_NAMESPACE", NAMESPACE)
            .env("OPERATOR_NAME", "olm-operator")
            .env("TMPDIR", &tmp)
            .flag("namespace", NAMESPACE)
            .flag("writeStatusName", "")
            .flag("writePackageServerStatusName", ""),
    );
    package_server(shared, &kubeconfig)
}

/// Its authorizer knows only the configuration that a pod finds in its own file system.
fn package_server(shared: &Shared, kubeconfig: &str) -> Result<()> {
    let account = pki::account(&shared.dir, NAMESPACE)?;
    let binary = shared.built.binary("package-server")?;
    let root = PrivateRoot::default()
        .bind(account, pki::ACCOUNT)
        .bind("/dev", "/dev")
        .bind("/proc", "/proc")
        .keep(binary.parent().context("a program has a folder")?)
        .keep(shared.dir.path());
    shared.parts.start(Part {
        root: Some(root),
        ..Part::new("package-server", binary)
            .env("KUBERNETES_SERVICE_HOST", "127.0.0.1")
            .env("KUBERNETES_SERVICE_PORT", API_PORT.to_string())
            .flag("kubeconfig", kubeconfig)
            .flag("global-namespace", GLOBAL)
            .flag("secure-port", PACKAGE_SERVER_PORT.to_string())
            .flag("cert-dir", "/tmp")
    });
    Ok(())
}

pub(super) const PACKAGE_SERVER_PORT: u16 = 5443;

/// Waits until every catalog is served and its packages are listed: a Subscription made earlier stays stuck for minutes.
pub(super) async fn ready(client: &Client, catalogs: &[Catalog]) -> Result<()> {
    let sources: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), GLOBAL, &resource("operators.coreos.com/v1alpha1", "CatalogSource"));
    let manifests: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), GLOBAL, &resource("packages.operators.coreos.com/v1", "PackageManifest"));
    for catalog in catalogs {
        until(&format!("CatalogSource {GLOBAL}/{} to be READY", catalog.name), PATIENCE, async || {
            let source = sources.get(catalog.name).await?;
            match source.data["status"]["connectionState"]["lastObservedState"].as_str() {
                Some("READY") => Ok(Some(())),
                Some(state) => bail!("its connection is {state}"),
                None => Ok(None),
            }
        })
        .await?;
    }
    for catalog in catalogs {
        for package in &catalog.packages {
            let what = format!("PackageManifest {package} to be listed");
            until(&what, PATIENCE, async || Ok(manifests.get_opt(package).await?.map(drop))).await?;
        }
    }
    Ok(())
}
