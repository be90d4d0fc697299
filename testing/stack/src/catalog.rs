//! File-based catalogs: the GPU Operator's published bundles, and a small entry of our own for NFD.
//!
//! Bundles carry their objects inline and name no image, so that nothing has to be unpacked by a job.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine as _;
use serde_json::{Value, json};

use crate::supervise::Shared;
use crate::yaml::documents;

/// One catalog that `opm` serves.
#[derive(Clone, Debug)]
pub(crate) struct Catalog {
    pub(crate) name: &'static str,
    pub(crate) dir: PathBuf,
    pub(crate) port: u16,
    pub(crate) packages: Vec<&'static str>,
}

/// Folders below `bundle/` in the GPU Operator's module, in their own spelling, oldest first.
const GPU_BUNDLES: &[&str] = &["v1.8.0", "1.8.2", "1.9.0-beta", "v1.9.0", "v1.9.1", "v1.10.0", "v1.10.1", "1.11.0"];
const GPU_PACKAGE: &str = "gpu-operator-certified";
const NFD_VERSION: &str = "4.11.0-202210041459";

/// Writes the catalogs of this stack.
pub(crate) fn write(shared: &Shared) -> Result<Vec<Catalog>> {
    let modules = &shared.built.modules;
    let root = shared.dir.join("catalogs");
    let save = |name: &str, blobs: &[Value]| -> Result<PathBuf> {
        let dir = root.join(name);
        fs::create_dir_all(&dir)?;
        let text: Vec<String> = blobs.iter().map(Value::to_string).collect();
        fs::write(dir.join("catalog.json"), text.join("\n")).context("cannot write a catalog")?;
        Ok(dir)
    };
    Ok(vec![
        Catalog {
            name: "certified-operators",
            dir: save("certified-operators", &gpu_operator(&modules.gpu_operator.join("bundle"))?)?,
            port: 50051,
            packages: vec![GPU_PACKAGE],
        },
        Catalog {
            name: "redhat-operators",
            dir: save("redhat-operators", &nfd(&modules.nfd)?)?,
            port: 50052,
            packages: vec!["nfd"],
        },
    ])
}

/// A bundle as its folder has it.
struct Bundle {
    name: String,
    replaces: Option<String>,
    channels: Vec<String>,
    default_channel: String,
    blob: Value,
}

fn gpu_operator(dir: &Path) -> Result<Vec<Value>> {
    let mut bundles = Vec::new();
    for folder in GPU_BUNDLES {
        bundles.push(read_bundle(&dir.join(folder)).with_context(|| format!("bundle {folder} of the GPU Operator"))?);
    }
    let newest = bundles.last().context("no bundle")?;
    let mut blobs = vec![json!({
        "schema": "olm.package", "name": GPU_PACKAGE, "defaultChannel": newest.default_channel,
    })];
    let mut channels: Vec<&String> = bundles.iter().flat_map(|bundle| &bundle.channels).collect();
    channels.sort();
    channels.dedup();
    for channel in channels {
        // The published `replaces` has gaps; within a channel each bundle replaces the one before it.
        let members: Vec<&Bundle> = bundles.iter().filter(|bundle| bundle.channels.contains(channel)).collect();
        let mut entries = Vec::new();
        for (index, bundle) in members.iter().enumerate() {
            let before = index.checked_sub(1).map(|index| &members[index].name).or(bundle.replaces.as_ref());
            entries.push(match before {
                Some(before) => json!({ "name": bundle.name, "replaces": before }),
                None => json!({ "name": bundle.name }),
            });
        }
        blobs.push(json!({
            "schema": "olm.channel", "package": GPU_PACKAGE, "name": channel, "entries": entries,
        }));
    }
    blobs.extend(bundles.into_iter().map(|bundle| bundle.blob));
    Ok(blobs)
}

fn read_bundle(dir: &Path) -> Result<Bundle> {
    let annotations =
        documents(&fs::read_to_string(dir.join("metadata/annotations.yaml"))?)?.pop().context("no annotations")?;
    let annotation = |name: &str| {
        let key = format!("operators.operatorframework.io.bundle.{name}.v1");
        annotations["annotations"][&key].as_str().map(str::to_owned).with_context(|| format!("no annotation `{key}`"))
    };
    let mut paths: Vec<PathBuf> =
        fs::read_dir(dir.join("manifests"))?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut objects = Vec::new();
    for path in paths {
        objects.extend(documents(&fs::read_to_string(&path)?)?);
    }
    // What a bundle's own annotations suggest is found on the CSV once a catalog is built from it.
    let suggested = &annotations["annotations"]["operatorframework.io/suggested-namespace"];
    if let Some(csv) = objects.iter_mut().find(|object| object["kind"] == "ClusterServiceVersion")
        && suggested.is_string()
        && csv["metadata"]["annotations"].get("operatorframework.io/suggested-namespace").is_none()
    {
        csv["metadata"]["annotations"]["operatorframework.io/suggested-namespace"] = suggested.clone();
    }
    let csv =
        objects.iter().find(|object| object["kind"] == "ClusterServiceVersion").context("no ClusterServiceVersion")?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let name = text(&csv["metadata"]["name"]).context("a CSV without a name")?;
    let version = text(&csv["spec"]["version"]).context("a CSV without a version")?;
    let replaces = text(&csv["spec"]["replaces"]);
    let blob = bundle_blob(&annotation("package")?, &name, &version, &objects)?;
    Ok(Bundle {
        name,
        replaces,
        channels: annotation("channels")?.split(',').map(|channel| channel.trim().to_owned()).collect(),
        default_channel: annotation("channel.default")?,
        blob,
    })
}

fn bundle_blob(package: &str, name: &str, version: &str, objects: &[Value]) -> Result<Value> {
    let mut properties =
        vec![json!({ "type": "olm.package", "value": { "packageName": package, "version": version } })];
    for crd in objects.iter().filter(|object| object["kind"] == "CustomResourceDefinition") {
        let spec = &crd["spec"];
        for version in spec["versions"].as_array().context("a CRD without versions")? {
            properties.push(json!({ "type": "olm.gvk", "value": {
                "group": spec["group"], "kind": spec["names"]["kind"], "version": version["name"],
            }}));
        }
    }
    for object in objects {
        let data = base64::engine::general_purpose::STANDARD.encode(serde_json::to_vec(object)?);
        properties.push(json!({ "type": "olm.bundle.object", "value": { "data": data } }));
    }
    Ok(json!({
        "schema": "olm.bundle", "name": name, "package": package, "image": "", "properties": properties,
    }))
}

/// No Go module of the NFD operator is to be had: a CSV of ours, with the CRDs of the real NFD.
fn nfd(module: &Path) -> Result<Vec<Value>> {
    let text = include_str!("../assets/nfd-operator.yaml").replace("NFD_VERSION", NFD_VERSION);
    let mut objects = documents(&text)?;
    let crds = module.join("deployment/base/nfd-crds/nfd-api-crds.yaml");
    objects.extend(documents(&fs::read_to_string(&crds).with_context(|| format!("`{}`", crds.display()))?)?);
    let owned: Vec<Value> = objects
        .iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition")
        .flat_map(|crd| {
            let versions = crd["spec"]["versions"].as_array().cloned().unwrap_or_default();
            versions.into_iter().map(|version| {
                json!({
                    "name": crd["metadata"]["name"], "kind": crd["spec"]["names"]["kind"],
                    "version": version["name"], "displayName": crd["spec"]["names"]["kind"],
                    "description": "Part of Node Feature Discovery.",
                })
            })
        })
        .collect();
    let csv = objects.first_mut().context("the NFD operator's CSV is missing")?;
    csv["spec"]["customresourcedefinitions"] = json!({ "owned": owned });
    let name = csv["metadata"]["name"].as_str().context("a CSV without a name")?.to_owned();
    let channel = |channel: &str| json!({ "schema": "olm.channel", "package": "nfd", "name": channel, "entries": [{ "name": name }] });
    Ok(vec![
        json!({ "schema": "olm.package", "name": "nfd", "defaultChannel": "stable" }),
        channel("stable"),
        channel("4.11"),
        bundle_blob("nfd", &name, NFD_VERSION, &objects)?,
    ])
}
