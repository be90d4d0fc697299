//! The columns of the built-in kinds, in the order and with the types of the real server.

use super::super::kinds::Column;

/// A heading, and where its cell comes from: a path, or the name of a rule in `cells` after `=`. A heading that starts
/// with `+` is a wide one; `#` before the source stands for an integer, `?` for a boolean, `@` for a date.
type Row = (&'static str, &'static str);

const AGE: Row = ("Age", "=age");
const CREATED: Row = ("Created At", "@.metadata.creationTimestamp");
const CONTAINERS: Row = ("+Containers", "=containers");
const IMAGES: Row = ("+Images", "=images");
const SELECTOR: Row = ("+Selector", "=selector");

/// The columns of a kind; name and age for one that has none of its own.
pub(super) fn built_in(group: &str, plural: &str, minor: u32) -> Vec<Column> {
    let rows: Vec<Row> = match group {
        "" => core(plural),
        "apps" => apps(plural),
        "batch" => batch(plural, minor),
        _ => others(group, plural),
    };
    let mut out: Vec<Column> = rows.iter().map(|row| column(*row)).collect();
    // Events begin with when they were seen last.
    if plural != "events" {
        out.insert(0, Column::new("Name", ".metadata.name"));
    }
    out
}

fn column((heading, source): Row) -> Column {
    let (name, priority) = heading.strip_prefix('+').map_or((heading, 0), |name| (name, 1));
    let typed = [("#", "integer"), ("?", "boolean"), ("@", "date")];
    let typed = typed.into_iter().find_map(|(mark, kind)| source.strip_prefix(mark).map(|path| (kind, path)));
    let (kind, path) = typed.unwrap_or(("string", source));
    Column { kind: kind.into(), priority, ..Column::new(name, path) }
}

fn core(plural: &str) -> Vec<Row> {
    match plural {
        "pods" => vec![
            ("Ready", "=pod-ready"),
            ("Status", "=pod-status"),
            ("Restarts", "=pod-restarts"),
            AGE,
            ("+IP", "=or-none .status.podIP"),
            ("+Node", "=or-none .spec.nodeName"),
            ("+Nominated Node", "=or-none .status.nominatedNodeName"),
            ("+Readiness Gates", "=gates"),
        ],
        "nodes" => vec![
            ("Status", "=node-status"),
            ("Roles", "=roles"),
            AGE,
            ("Version", ".status.nodeInfo.kubeletVersion"),
            ("+Internal-IP", "=address InternalIP"),
            ("+External-IP", "=address ExternalIP"),
            ("+OS-Image", "=or-unknown .status.nodeInfo.osImage"),
            ("+Kernel-Version", "=or-unknown .status.nodeInfo.kernelVersion"),
            ("+Container-Runtime", "=or-unknown .status.nodeInfo.containerRuntimeVersion"),
        ],
        "services" => vec![
            ("Type", ".spec.type"),
            ("Cluster-IP", "=or-none .spec.clusterIP"),
            ("External-IP", "=external"),
            ("Port(s)", "=service-ports"),
            AGE,
            ("+Selector", "=labels .spec.selector"),
        ],
        "namespaces" => vec![("Status", ".status.phase"), AGE],
        "configmaps" => vec![("Data", "=sizes .data .binaryData"), AGE],
        "secrets" => vec![("Type", ".type"), ("Data", "=sizes .data"), AGE],
        "serviceaccounts" => vec![("Secrets", "=sizes .secrets"), AGE],
        "events" => EVENTS.to_vec(),
        "endpoints" => vec![("Endpoints", "=endpoints"), AGE],
        "persistentvolumeclaims" => vec![
            ("Status", ".status.phase"),
            ("Volume", ".spec.volumeName"),
            ("Capacity", ".status.capacity.storage"),
            ("Access Modes", "=access"),
            ("StorageClass", ".spec.storageClassName"),
            ("VolumeAttributesClass", "=or-unset .spec.volumeAttributesClassName"),
            AGE,
            ("+VolumeMode", "=or-unset .spec.volumeMode"),
        ],
        "persistentvolumes" => vec![
            ("Capacity", ".spec.capacity.storage"),
            ("Access Modes", "=access"),
            ("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy"),
            ("Status", ".status.phase"),
            ("Claim", "=claim"),
            ("StorageClass", ".spec.storageClassName"),
            ("VolumeAttributesClass", "=or-unset .spec.volumeAttributesClassName"),
            ("Reason", ".status.reason"),
            AGE,
            ("+VolumeMode", "=or-unset .spec.volumeMode"),
        ],
        "resourcequotas" => vec![("Request", "=quota"), ("Limit", "=quota limits."), AGE],
        "limitranges" => vec![CREATED],
        "podtemplates" => {
            vec![
                ("Containers", "=containers"),
                ("Images", "=images"),
                ("Pod Labels", "=labels .template.metadata.labels"),
            ]
        }
        "replicationcontrollers" => replica_sets(),
        _ => vec![AGE],
    }
}

const EVENTS: [Row; 10] = [
    ("Last Seen", "=seen-last"),
    ("Type", ".type"),
    ("Reason", ".reason"),
    ("Object", "=involved"),
    ("+Subobject", ".involvedObject.fieldPath"),
    ("+Source", "=source"),
    ("Message", "=message"),
    ("+First Seen", "=seen-first"),
    ("+Count", "=count"),
    ("+Name", ".metadata.name"),
];

fn replica_sets() -> Vec<Row> {
    vec![
        ("Desired", "#=number .spec.replicas"),
        ("Current", "#=number .status.replicas"),
        ("Ready", "#=number .status.readyReplicas"),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

fn apps(plural: &str) -> Vec<Row> {
    match plural {
        "deployments" => vec![
            ("Ready", "=replicas"),
            ("Up-to-date", "=number .status.updatedReplicas"),
            ("Available", "=number .status.availableReplicas"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        "replicasets" => replica_sets(),
        "statefulsets" => vec![("Ready", "=replicas"), AGE, CONTAINERS, IMAGES],
        "daemonsets" => vec![
            ("Desired", "#=number .status.desiredNumberScheduled"),
            ("Current", "#=number .status.currentNumberScheduled"),
            ("Ready", "#=number .status.numberReady"),
            ("Up-to-date", "#=number .status.updatedNumberScheduled"),
            ("Available", "#=number .status.numberAvailable"),
            ("Node Selector", "=labels .spec.template.spec.nodeSelector"),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ],
        "controllerrevisions" => vec![("Controller", "=controller"), ("Revision", "=number .revision"), AGE],
        _ => vec![AGE],
    }
}

fn batch(plural: &str, minor: u32) -> Vec<Row> {
    let mut rows = match plural {
        "jobs" => vec![("Status", "=job-status"), ("Completions", "=completions"), ("Duration", "=job-duration"), AGE],
        "cronjobs" => vec![
            ("Schedule", ".spec.schedule"),
            ("Timezone", "=or-none .spec.timeZone"),
            ("Suspend", "?=suspend"),
            ("Active", "#=sizes .status.active"),
            ("Last Schedule", "=ago .status.lastScheduleTime"),
            AGE,
        ],
        _ => return vec![AGE],
    };
    rows.retain(|(heading, _)| !(*heading == "Status" && minor < 30 || *heading == "Timezone" && minor < 27));
    rows.extend([CONTAINERS, IMAGES, SELECTOR]);
    rows
}

fn others(group: &str, plural: &str) -> Vec<Row> {
    let bindings = || {
        vec![
            ("Role", "=role"),
            AGE,
            ("+Users", "=subjects User"),
            ("+Groups", "=subjects Group"),
            ("+ServiceAccounts", "=subjects ServiceAccount"),
        ]
    };
    match (group, plural) {
        ("events.k8s.io", "events") => EVENTS.to_vec(),
        ("autoscaling", "scales") => {
            vec![("Desired", "#=number .spec.replicas"), ("Available", "#=number .status.replicas"), AGE]
        }
        ("autoscaling", _) => vec![
            ("Reference", "=reference"),
            ("Targets", "=targets"),
            ("MinPods", "=or-unset .spec.minReplicas"),
            ("MaxPods", "=number .spec.maxReplicas"),
            ("Replicas", "=number .status.currentReplicas"),
            AGE,
        ],
        ("coordination.k8s.io", "leases") => vec![("Holder", ".spec.holderIdentity"), AGE],
        ("discovery.k8s.io", "endpointslices") => {
            vec![("AddressType", ".addressType"), ("Ports", "=slice-ports"), ("Endpoints", "=slice-endpoints"), AGE]
        }
        ("policy", "poddisruptionbudgets") => vec![
            ("Min Available", "=or-na .spec.minAvailable"),
            ("Max Unavailable", "=or-na .spec.maxUnavailable"),
            ("Allowed Disruptions", "#=number .status.disruptionsAllowed"),
            AGE,
        ],
        ("networking.k8s.io", "networkpolicies") => vec![("Pod-Selector", "=selector .spec.podSelector"), AGE],
        ("networking.k8s.io", "ingresses") => vec![
            ("Class", "=or-none .spec.ingressClassName"),
            ("Hosts", "=hosts"),
            ("Address", "=ingress-address"),
            ("Ports", "=ingress-ports"),
            AGE,
        ],
        ("rbac.authorization.k8s.io", "roles" | "clusterroles")
        | ("apiextensions.k8s.io", "customresourcedefinitions") => vec![CREATED],
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => bindings(),
        ("node.k8s.io", "runtimeclasses") => vec![("Handler", ".handler"), AGE],
        ("scheduling.k8s.io", "priorityclasses") => vec![
            ("Value", "#=number .value"),
            ("Global-Default", "?=flag .globalDefault"),
            AGE,
            ("PreemptionPolicy", ".preemptionPolicy"),
        ],
        ("storage.k8s.io", "storageclasses") => vec![
            ("Provisioner", ".provisioner"),
            ("ReclaimPolicy", ".reclaimPolicy"),
            ("VolumeBindingMode", ".volumeBindingMode"),
            ("AllowVolumeExpansion", "=flag .allowVolumeExpansion"),
            AGE,
        ],
        ("storage.k8s.io", "csinodes") => vec![("Drivers", "#=sizes .spec.drivers"), AGE],
        ("apiregistration.k8s.io", "apiservices") => vec![("Service", "=service"), ("Available", "=available"), AGE],
        ("admissionregistration.k8s.io", _) => vec![("Webhooks", "#=sizes .webhooks"), AGE],
        _ => vec![AGE],
    }
}
