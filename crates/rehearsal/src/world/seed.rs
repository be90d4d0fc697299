//! What is there before anything happens: namespaces, nodes, machines, catalogs.

use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::WorldError;
use super::replay::Player;
use crate::api::ApiServer;
use crate::api::kinds::KindDef;
use crate::controllers::seeds::{
    CATALOG_NAMESPACE, CATALOG_SOURCE, CLUSTER_VERSION, GLOBAL_NAMESPACE, INFRASTRUCTURE, Kind, MACHINE,
    MACHINE_NAMESPACE, MACHINE_SET, MACHINE_SET_LABEL, NAMESPACE, NODE, NewNode, OPERATOR_GROUP, Read, connection,
    instance, node_from, owner_reference, provider_spec, taint,
};
use crate::controllers::{Context, PackageManifests};
use crate::scenario::{MachineSet, Platform};

/// Namespaces of every OpenShift cluster that somebody looks at.
const NAMESPACES: [&str; 5] = [
    MACHINE_NAMESPACE,
    CATALOG_NAMESPACE,
    GLOBAL_NAMESPACE,
    "openshift-operator-lifecycle-manager",
    "openshift-monitoring",
];

/// Creates the scenario's objects.
pub(super) async fn seed(api: &ApiServer, context: &Context, packages: &PackageManifests) -> Result<(), WorldError> {
    let seed = Seeder { context, now: context.stamp() };
    for node in &context.scenario.nodes {
        let new = NewNode {
            name: &node.name,
            role: &node.role,
            kind: &node.instance_type,
            zone: &node.zone,
            identity: None,
            provider_id: "",
            machine: None,
            taints: &[],
            ready: true,
        };
        seed.put(NODE, node_from(&context.scenario, &new, &seed.now)).await?;
    }
    if context.scenario.platform == Platform::None {
        for kind in [MACHINE_SET, MACHINE] {
            api.unregister(kind.group, kind.plural);
        }
    }
    if !context.scenario.openshift.is_empty() {
        seed.openshift().await?;
        let provider = packages.clone();
        let kind = KindDef::namespaced("packages.operators.coreos.com", "v1", "PackageManifest", "packagemanifests")
            .provided();
        // The same package can be listed in every namespace that sees its catalog.
        api.set_virtual(kind, move |namespace: Option<&str>| {
            let mut all = provider.list();
            for manifest in &mut all {
                if let Some(namespace) = namespace {
                    manifest["metadata"]["namespace"] = namespace.into();
                }
            }
            all
        });
        let settled = context.scenario.catalogs.iter().filter(|catalog| catalog.settled && catalog.stuck_at.is_empty());
        let ready: Vec<&str> = settled.map(|catalog| catalog.name.as_str()).collect();
        packages.publish(context, &ready, &seed.now);
    }
    for manifest in &context.scenario.objects {
        seed.manifest(manifest).await?;
    }
    Ok(())
}

struct Seeder<'a> {
    context: &'a Context,
    now: String,
}

impl Seeder<'_> {
    /// Creates an object together with its status.
    async fn put(&self, kind: Kind, object: DynamicObject) -> Result<DynamicObject, WorldError> {
        // A recording knows better what it was like.
        if Player::begins_with(self.context.scenario.recorded.as_ref(), kind.name, object.namespace(), object.name()) {
            return Ok(object);
        }
        let failed = |source| WorldError::Seed { object: format!("{}/{}", kind.name, object.name()), source };
        let client = self.context.client.clone();
        let api: Api<DynamicObject> = if kind.namespaced {
            Api::namespaced_with(client, object.namespace(), &kind.resource())
        } else {
            Api::all_with(client, &kind.resource())
        };
        let made = api.create(&PostParams::default(), &object).await.map_err(failed)?;
        if object.at("/status").is_null() {
            return Ok(made);
        }
        let status = json!({"status": object.at("/status")});
        api.patch_status(object.name(), &PatchParams::default(), &Patch::Merge(status)).await.map_err(failed)
    }

    async fn openshift(&self) -> Result<(), WorldError> {
        for name in NAMESPACES {
            self.put(NAMESPACE, NAMESPACE.object("", name)).await?;
        }
        self.put(INFRASTRUCTURE, self.infrastructure()).await?;
        self.put(CLUSTER_VERSION, self.version()).await?;
        let mut group = OPERATOR_GROUP.object(GLOBAL_NAMESPACE, "global-operators");
        group.data = json!({"spec": {}, "status": {"namespaces": [""], "lastUpdated": self.now}});
        self.put(OPERATOR_GROUP, group).await?;
        for catalog in &self.context.scenario.catalogs {
            let mut source = CATALOG_SOURCE.object(CATALOG_NAMESPACE, &catalog.name);
            source.data = json!({"spec": {
                "sourceType": "grpc", "displayName": catalog.display_name, "publisher": "Red Hat",
                "image": format!("registry.redhat.io/redhat/{}-index:v4.11", catalog.name.trim_end_matches('s')),
            }});
            if catalog.settled {
                let state = if catalog.stuck_at.is_empty() { "READY" } else { &catalog.stuck_at };
                source.data["status"] = connection(&source, state, &self.now);
            }
            self.put(CATALOG_SOURCE, source).await?;
        }
        let mut places = std::collections::BTreeMap::new();
        for set in &self.context.scenario.machine_sets {
            self.machine_set(set, &mut places).await?;
        }
        Ok(())
    }

    fn infrastructure(&self) -> DynamicObject {
        let scenario = &self.context.scenario;
        let platform = match scenario.platform {
            Platform::Aws => "AWS",
            Platform::Azure => "Azure",
            Platform::Gcp => "GCP",
            Platform::Vsphere => "VSphere",
            Platform::None => "None",
        };
        let mut object = INFRASTRUCTURE.object("", "cluster");
        object.data = json!({
            "spec": {"platformSpec": {"type": platform}},
            "status": {
                "infrastructureName": scenario.infra, "platform": platform, "platformStatus": {"type": platform},
                "controlPlaneTopology": "HighlyAvailable", "infrastructureTopology": "HighlyAvailable",
                "apiServerURL": "https://api.demo.example.test:6443",
            },
        });
        object
    }

    fn version(&self) -> DynamicObject {
        let version = &self.context.scenario.openshift;
        let image = format!("quay.io/openshift-release-dev/ocp-release@sha256:{:064x}", 0x4110_0270_u64);
        let condition = |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "message": message, "lastTransitionTime": self.now});
        let mut object = CLUSTER_VERSION.object("", "version");
        object.data = json!({
            "spec": {"channel": "stable-4.11", "clusterID": "00000000-0000-4000-8000-000000000001"},
            "status": {
                "desired": {"version": version, "image": image},
                "observedGeneration": 1, "versionHash": "",
                "history": [{
                    "state": "Completed", "version": version, "image": image, "verified": false,
                    "startedTime": self.now, "completionTime": self.now,
                }],
                "conditions": [
                    condition("Available", "True", &format!("Done applying {version}")),
                    condition("Failing", "False", ""),
                    condition("Progressing", "False", &format!("Cluster version is {version}")),
                ],
            },
        });
        object
    }

    async fn machine_set(
        &self,
        set: &MachineSet,
        places: &mut std::collections::BTreeMap<String, u32>,
    ) -> Result<(), WorldError> {
        let scenario = &self.context.scenario;
        let labels = json!({"machine.openshift.io/cluster-api-cluster": scenario.infra, MACHINE_SET_LABEL: set.name});
        let mut template_labels = labels.clone();
        for key in ["machine-role", "machine-type"] {
            template_labels[format!("machine.openshift.io/cluster-api-{key}")] = "worker".into();
        }
        let taints: Vec<Value> = set.taints.iter().map(|text| taint(text)).collect();
        let mut template = json!({
            "metadata": {"labels": template_labels},
            "spec": {
                "metadata": {}, "lifecycleHooks": {},
                "providerSpec": {"value": provider_spec(scenario, &set.instance_type, &set.zone)},
            },
        });
        if !taints.is_empty() {
            template["spec"]["taints"] = taints.clone().into();
        }
        let count = set.replicas.unwrap_or(1);
        let mut object = MACHINE_SET.object(MACHINE_NAMESPACE, &set.name);
        object.metadata.labels =
            Some([("machine.openshift.io/cluster-api-cluster".to_owned(), scenario.infra.clone())].into());
        object.metadata.annotations = (!set.annotations.is_empty()).then(|| set.annotations.clone());
        object.data = json!({"spec": {"selector": {"matchLabels": labels}, "template": template}});
        if let Some(replicas) = set.replicas {
            object.data["spec"]["replicas"] = replicas.into();
        }
        if count > 0 {
            object.data["status"] = json!({
                "replicas": count, "fullyLabeledReplicas": count, "readyReplicas": count, "availableReplicas": count,
                "observedGeneration": 1,
            });
        }
        let made = self.put(MACHINE_SET, object).await?;
        if made.uid().is_empty() {
            return Ok(());
        }
        for _ in 0..count {
            let place = places.entry(set.instance_type.clone()).or_default();
            self.machine(set, &made, &template, &taints, *place).await?;
            *place += 1;
        }
        Ok(())
    }

    /// A machine that has long been running, with its node.
    async fn machine(
        &self,
        set: &MachineSet,
        owner: &DynamicObject,
        template: &Value,
        taints: &[Value],
        place: u32,
    ) -> Result<(), WorldError> {
        let scenario = &self.context.scenario;
        let suffix =
            format!("{:05x}", self.context.dice.number("machine", &format!("{}/{place}", set.name)) & 0xf_ffff);
        let name = format!("{}-{suffix}", set.name);
        let (provider_id, node) = instance(scenario, &name, &set.instance_type, &set.zone, place);
        let new = NewNode {
            name: &node,
            role: "worker",
            kind: &set.instance_type,
            zone: &set.zone,
            identity: Some(format!("{}/{place}", set.instance_type)),
            provider_id: &provider_id,
            machine: Some(&name),
            taints,
            ready: true,
        };
        let node = self.put(NODE, node_from(scenario, &new, &self.now)).await?;
        let mut machine = MACHINE.object(MACHINE_NAMESPACE, &name);
        machine.metadata.finalizers = Some(vec!["machine.machine.openshift.io".to_owned()]);
        machine.metadata.owner_references = Some(vec![owner_reference(MACHINE_SET, owner)]);
        machine.metadata.labels = serde_json::from_value(template["metadata"]["labels"].clone()).ok();
        let mut spec = template["spec"].clone();
        spec["providerID"] = provider_id.into();
        machine.data = json!({"spec": spec, "status": {
            "phase": "Running", "lastUpdated": self.now,
            "nodeRef": {"kind": "Node", "name": node.name(), "uid": node.uid()},
            "addresses": [{"type": "InternalDNS", "address": node.name()}],
        }});
        self.put(MACHINE, machine).await?;
        Ok(())
    }

    /// A manifest of the scenario, of whatever kind is served.
    async fn manifest(&self, manifest: &Value) -> Result<(), WorldError> {
        let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let label = format!("{}/{}", text("/kind"), text("/metadata/name"));
        let failed = |source| WorldError::Seed { object: label.clone(), source };
        let object: DynamicObject =
            serde_json::from_value(manifest.clone()).map_err(|error| failed(kube::Error::SerdeError(error)))?;
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let gvk = kube::core::GroupVersionKind::gvk(group, version, &kind);
        let (resource, capabilities) =
            kube::discovery::pinned_kind(&self.context.client, &gvk).await.map_err(failed)?;
        let client = self.context.client.clone();
        let api: Api<DynamicObject> = if capabilities.scope == kube::discovery::Scope::Namespaced {
            Api::namespaced_with(client, object.namespace(), &resource)
        } else {
            Api::all_with(client, &resource)
        };
        api.create(&PostParams::default(), &object).await.map_err(failed)?;
        if !object.at("/status").is_null() {
            let status = json!({"status": object.at("/status")});
            api.patch_status(object.name(), &PatchParams::default(), &Patch::Merge(status)).await.map_err(failed)?;
        }
        Ok(())
    }
}
