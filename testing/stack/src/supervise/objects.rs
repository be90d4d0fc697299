//! CRDs and the objects that make a bare API server look like an OpenShift cluster on a cloud.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::shared::{Shared, until};
use crate::build::Modules;
use crate::yaml::documents;

/// Plurals that cannot be told from the kind.
const PLURALS: &[(&str, &str)] = &[("ClusterLogs", "clusterlogs"), ("NodeFeatureDiscovery", "nodefeaturediscoveries")];

/// The resource of a kind.
pub(crate) fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let gvk = GroupVersionKind::gvk(group, version, kind);
    match PLURALS.iter().find(|(name, _)| *name == kind) {
        Some((_, plural)) => ApiResource::from_gvk_with_plural(&gvk, plural),
        None => ApiResource::from_gvk(&gvk),
    }
}

/// Writes whole objects.
#[derive(Clone)]
pub(crate) struct Applier {
    client: Client,
}

impl Applier {
    pub(crate) fn new(client: &Client) -> Self {
        Self { client: client.clone() }
    }

    fn api(&self, object: &Value) -> Result<(Api<DynamicObject>, String)> {
        let field = |name: &str| object[name].as_str().with_context(|| format!("an object without `{name}`"));
        let resource = resource(field("apiVersion")?, field("kind")?);
        let name = object["metadata"]["name"].as_str().context("an object without a name")?;
        let api = match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        Ok((api, name.to_owned()))
    }

    /// Server-side apply; a `status` goes through its subresource.
    pub(crate) async fn apply(&self, object: &Value) -> Result<()> {
        let (api, name) = self.api(object)?;
        let params = PatchParams::apply("toolbox-stack").force();
        let what = || format!("cannot apply {} {name}", object["kind"].as_str().unwrap_or_default());
        let mut main = object.clone();
        let status = main.as_object_mut().and_then(|fields| fields.shift_remove("status"));
        api.patch(&name, &params, &Patch::Apply(&main)).await.with_context(what)?;
        if let Some(status) = status {
            let patch = json!({
                "apiVersion": object["apiVersion"], "kind": object["kind"],
                "metadata": { "name": name }, "status": status,
            });
            api.patch_status(&name, &params, &Patch::Apply(&patch)).await.with_context(what)?;
        }
        Ok(())
    }

    async fn apply_all(&self, objects: &[Value]) -> Result<()> {
        stream::iter(objects).map(|object| Ok(self.apply(object))).try_buffer_unordered(6).try_collect().await
    }
}

fn read(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    documents(&text).with_context(|| format!("`{}`", path.display()))
}

fn yaml_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .with_context(|| format!("cannot list `{}`", dir.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    Ok(files)
}

fn kwok_crds(modules: &Modules) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    for file in yaml_files(&modules.kwok.join("kustomize/crd/bases"))? {
        found.extend(read(&file)?.into_iter().filter(|object| object["kind"] == "CustomResourceDefinition"));
    }
    Ok(found)
}

fn crds(modules: &Modules) -> Result<Vec<Value>> {
    let mut files = Vec::new();
    files.extend(yaml_files(&modules.olm_api.join("crds"))?);
    let openshift = |path: &str| modules.openshift_api.join(path);
    for name in [
        "machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machines-Default.crd.yaml",
        "machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machinesets-Default.crd.yaml",
        "machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machinehealthchecks.crd.yaml",
        "config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
        "config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml",
        "config/v1/zz_generated.crd-manifests/0000_03_config-operator_01_proxies.crd.yaml",
        "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_dnses.crd.yaml",
        "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-Default.crd.yaml",
        "security/v1/zz_generated.crd-manifests/0000_03_config-operator_01_securitycontextconstraints.crd.yaml",
    ] {
        files.push(openshift(name));
    }
    let mut found = kwok_crds(modules)?;
    for file in files {
        found.extend(read(&file)?.into_iter().filter(|object| object["kind"] == "CustomResourceDefinition"));
    }
    // Kinds that no Go module ships a CRD for.
    found.extend(documents(include_str!("../../assets/crds.yaml"))?);
    Ok(found)
}

/// Node and pod life from kwok's own stages, with shorter pauses.
fn stages(modules: &Modules) -> Result<Vec<Value>> {
    let base = modules.kwok.join("kustomize/stage");
    let mut found = documents(include_str!("../../assets/stages.yaml"))?;
    found.extend(read(&base.join("node/heartbeat-with-lease/node-heartbeat-with-lease.yaml"))?);
    for file in yaml_files(&base.join("pod/general"))? {
        for mut stage in read(&file)? {
            if stage["kind"] != "Stage" {
                continue;
            }
            // A pod goes as soon as it may: its containers have nothing to finish within their grace period.
            stage["spec"]["delay"] = json!({ "durationMilliseconds": 100, "jitterDurationMilliseconds": 500 });
            found.push(stage);
        }
    }
    Ok(found)
}

/// What kwok needs, and nothing else.
pub(super) async fn install_kwok(shared: &Shared, client: &Client) -> Result<()> {
    let applier = Applier::new(client);
    let crds = kwok_crds(&shared.built.modules)?;
    applier.apply_all(&crds).await?;
    established(client, &crds).await?;
    applier.apply_all(&stages(&shared.built.modules)?).await
}

/// Everything that makes the cluster look like OpenShift on a cloud.
pub(super) async fn install(shared: &Shared, client: &Client) -> Result<()> {
    let applier = Applier::new(client);
    let modules = &shared.built.modules;
    let crds = crds(modules)?;
    applier.apply_all(&crds).await?;
    established(client, &crds).await?;
    let cluster = documents(include_str!("../../assets/cluster.yaml"))?;
    let (namespaces, rest): (Vec<Value>, Vec<Value>) =
        cluster.into_iter().partition(|object| object["kind"] == "Namespace");
    applier.apply_all(&namespaces).await?;
    applier.apply_all(&stages(modules)?).await?;
    applier.apply_all(&rest).await?;
    applier.apply_all(&machine_sets()?).await
}

async fn established(client: &Client, crds: &[Value]) -> Result<()> {
    let api: Api<DynamicObject> =
        Api::all_with(client.clone(), &resource("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
    until("CRDs to be established", Duration::from_secs(60), async || {
        let list = api.list(&kube::api::ListParams::default()).await?;
        for crd in crds {
            let name = crd["metadata"]["name"].as_str().unwrap_or_default();
            let ready = list.items.iter().filter(|item| item.metadata.name.as_deref() == Some(name)).any(|item| {
                item.data["status"]["conditions"].as_array().is_some_and(|conditions| {
                    conditions
                        .iter()
                        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
                })
            });
            if !ready {
                bail!("{name} is not");
            }
        }
        Ok(Some(()))
    })
    .await
}

/// Three machine sets as an installer on AWS makes them, one per zone.
fn machine_sets() -> Result<Vec<Value>> {
    let template = include_str!("../../assets/machineset.yaml");
    ["us-test-1a", "us-test-1b", "us-test-1c"]
        .iter()
        .map(|zone| documents(&template.replace("ZONE", zone))?.pop().context("the machine set's template is empty"))
        .collect()
}
