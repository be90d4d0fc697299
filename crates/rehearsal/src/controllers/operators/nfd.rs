//! Node Feature Discovery: the operator makes a master and workers, the workers label their nodes.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::presence;
use crate::controllers::kit::{
    CRD, Cache, Context, Controller, DAEMON_SET, DEPLOYMENT, Kind, NFD, NODE, POD, Read, Timers, identity, is_true,
    owner_reference, with_condition,
};
use crate::controllers::machines::{KERNEL, OSTREE};

/// The operator's own Deployment.
pub(crate) const DEPLOYMENT_NAME: &str = "nfd-controller-manager";
/// The DaemonSet that looks at nodes.
pub(crate) const WORKER: &str = "nfd-worker";
const PREFIX: &str = "feature.node.kubernetes.io/";

/// The NFD operator.
pub(crate) struct NfdOperator;

impl Controller for NfdOperator {
    const KINDS: &'static [Kind] = &[CRD, DEPLOYMENT, DAEMON_SET];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        if !presence::served(cache, NFD) || presence::running(cache, DEPLOYMENT_NAME).is_none() {
            return Ok(());
        }
        for instance in cache.all(NFD) {
            let wait = context.draw(context.scenario.timings.operator_reconcile, "operatorReconcile", DEPLOYMENT_NAME);
            if instance.is_deleted() || !timers.passed(format!("{}/reconcile", instance.uid()), wait) {
                continue;
            }
            for set in [master(context, &instance), worker(context, &instance)] {
                if cache.get(DAEMON_SET, set.namespace(), set.name()).is_none() {
                    cache.create(DAEMON_SET, &set).await?;
                }
            }
            status(context, cache, &instance).await?;
        }
        Ok(())
    }
}

async fn status(context: &Context, cache: &mut Cache, instance: &DynamicObject) -> Result<(), kube::Error> {
    let late = [WORKER, "nfd-master"].into_iter().find(|name| {
        cache
            .get(DAEMON_SET, instance.namespace(), name)
            .is_none_or(|set| set.int("/status/numberReady") < set.int("/status/desiredNumberScheduled").max(1))
    });
    let now = context.stamp();
    let (available, reason) = late.map_or((true, String::new()), |name| (false, format!("{name} is progressing")));
    let present = instance.list("/status/conditions");
    let conditions = with_condition(
        present,
        "Available",
        available,
        if available { "" } else { "NFDDaemonSetNotReady" },
        &reason,
        &now,
    );
    let conditions = with_condition(&conditions, "Progressing", !available, "", "", &now);
    let conditions = with_condition(&conditions, "Degraded", false, "", "", &now);
    cache.status(NFD, instance, json!({"conditions": conditions})).await
}

fn daemon_set(context: &Context, instance: &DynamicObject, name: &str, spec: Value) -> DynamicObject {
    let image = match instance.text("/spec/operand/image") {
        "" => context.scenario.images.get("nfd").map(|image| image.reference.clone()).unwrap_or_default(),
        image => image.to_owned(),
    };
    let mut set = DAEMON_SET.object(instance.namespace(), name);
    set.metadata.owner_references = Some(vec![owner_reference(NFD, instance)]);
    set.metadata.labels = Some([("app".to_owned(), name.to_owned())].into());
    let mut pod = spec;
    pod["containers"] = json!([{"name": name, "image": image, "imagePullPolicy": "Always"}]);
    pod["serviceAccountName"] = name.into();
    set.data = json!({"spec": {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
    }});
    set
}

fn master(context: &Context, instance: &DynamicObject) -> DynamicObject {
    let spec = json!({
        "nodeSelector": {"node-role.kubernetes.io/master": ""},
        "tolerations": [{"key": "node-role.kubernetes.io/master", "operator": "Exists", "effect": "NoSchedule"}],
    });
    daemon_set(context, instance, "nfd-master", spec)
}

fn worker(context: &Context, instance: &DynamicObject) -> DynamicObject {
    let mut spec = json!({"hostNetwork": true, "nodeSelector": {"node-role.kubernetes.io/worker": ""}});
    if let Some(tolerations) = instance.at("/spec/workerConfig/tolerations").as_array() {
        spec["tolerations"] = tolerations.clone().into();
    }
    daemon_set(context, instance, WORKER, spec)
}

/// The NFD workers, and the master that writes what they find.
pub(crate) struct NfdWorkers;

impl Controller for NfdWorkers {
    const KINDS: &'static [Kind] = &[NODE, POD];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for pod in cache.all(POD) {
            let works = pod.owner("DaemonSet").is_some_and(|owner| owner.name == WORKER) && !pod.is_deleted();
            if !works || !is_true(&pod, "Ready") {
                continue;
            }
            let Some(node) = cache.get(NODE, "", pod.text("/spec/nodeName")) else { continue };
            let wait = context.draw(context.scenario.timings.nfd_label, "nfdLabel", &identity::of_node(&node));
            if timers.passed(format!("{}/label", pod.uid()), wait) {
                cache.patch(NODE, &node, json!({"metadata": {"labels": labels(context, &node)}})).await?;
            }
        }
        Ok(())
    }
}

/// What NFD says about a node.
fn labels(context: &Context, node: &DynamicObject) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    let mut label = |key: &str, value: &str| labels.insert(format!("{PREFIX}{key}"), value.to_owned());
    label("system-os_release.ID", "rhcos");
    label("system-os_release.VERSION_ID", "4.11");
    label("system-os_release.VERSION_ID.major", "4");
    label("system-os_release.VERSION_ID.minor", "11");
    label("system-os_release.RHEL_VERSION", "8.6");
    label("system-os_release.OSTREE_VERSION", OSTREE);
    label("kernel-version.full", KERNEL);
    label("kernel-version.major", "4");
    label("kernel-version.minor", "18");
    label("cpu-cpuid.AVX2", "true");
    label("pci-1d0f.present", "true");
    let kind = node.label("node.kubernetes.io/instance-type").unwrap_or_default();
    let has_gpu = context.scenario.instance_types.get(kind).is_some_and(|kind| kind.gpus > 0);
    let quirks = &context.scenario.quirks;
    let blind = quirks.no_gpu_label && quirks.concerns("noGpuLabel", identity::names_of_node(node));
    if has_gpu && !blind {
        label("pci-10de.present", "true");
    }
    labels
}
