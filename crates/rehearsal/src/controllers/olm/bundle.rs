//! The objects that a bundle unpacks to.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::component_label;
use crate::controllers::kit::{CRD, CSV, Context, SERVICE_ACCOUNT};
use crate::scenario::{Bundle, OwnedCrd, Package};

/// Modes that a CSV lists, supported or not.
const MODES: [&str; 4] = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];

/// The `installModes` of a bundle.
pub(super) fn install_modes(bundle: &Bundle) -> Vec<Value> {
    MODES
        .iter()
        .map(|mode| json!({"type": mode, "supported": bundle.install_modes.iter().any(|own| own == mode)}))
        .collect()
}

/// The annotations of a bundle's CSV.
pub(super) fn annotations(context: &Context, bundle: &Bundle) -> Value {
    let mut annotations = json!({
        "alm-examples": serde_json::to_string_pretty(&bundle.examples).unwrap_or_default(),
        "capabilities": "Full Lifecycle",
        "certified": "true",
        "containerImage": image(context, &bundle.image),
        "operators.openshift.io/infrastructure-features": "[\"disconnected\"]",
    });
    if !bundle.suggested_namespace.is_empty() {
        annotations["operatorframework.io/suggested-namespace"] = bundle.suggested_namespace.clone().into();
    }
    annotations
}

/// The reference of an image by its short name.
fn image(context: &Context, name: &str) -> String {
    context.scenario.images.get(name).map_or_else(|| name.to_owned(), |image| image.reference.clone())
}

/// The kinds that a bundle owns, as a CSV lists them.
pub(super) fn owned(bundle: &Bundle) -> Vec<Value> {
    let entry = |crd: &OwnedCrd| {
        json!({
            "name": format!("{}.{}", crd.plural, crd.group), "version": crd.version, "kind": crd.kind,
            "displayName": crd.kind, "description": format!("{} of {}", crd.kind, bundle.display_name),
        })
    };
    bundle.owned.iter().map(entry).collect()
}

/// The CSV of a bundle in a namespace.
pub(super) fn csv(context: &Context, package: &Package, bundle: &Bundle, namespace: &str) -> DynamicObject {
    let mut csv = CSV.object(namespace, &bundle.csv);
    csv.metadata.labels = Some([(component_label(&package.name, namespace), String::new())].into());
    csv.metadata.annotations = serde_json::from_value(annotations(context, bundle)).ok();
    let operator = image(context, &bundle.image);
    let related = context
        .scenario
        .images
        .iter()
        .map(|(name, image)| json!({"name": format!("{name}-image"), "image": image.reference}));
    csv.data = json!({"spec": {
        "displayName": bundle.display_name,
        "version": bundle.version,
        "replaces": bundle.replaces,
        "installModes": install_modes(bundle),
        "customresourcedefinitions": {"owned": owned(bundle)},
        "relatedImages": related.collect::<Vec<_>>(),
        "install": {"strategy": "deployment", "spec": {"deployments": [{
            "name": bundle.deployment,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": bundle.pod_labels},
                "template": {
                    "metadata": {"labels": bundle.pod_labels},
                    "spec": {
                        "serviceAccountName": bundle.service_account,
                        "containers": [{"name": bundle.deployment, "image": operator, "imagePullPolicy": "IfNotPresent"}],
                    },
                },
            },
        }]}},
    }});
    if bundle.replaces.is_empty() {
        csv.data["spec"]["replaces"].take();
    }
    csv
}

/// The service account of a bundle in a namespace.
pub(super) fn service_account(bundle: &Bundle, namespace: &str) -> DynamicObject {
    SERVICE_ACCOUNT.object(namespace, &bundle.service_account)
}

/// The definition of a kind that a bundle owns.
pub(super) fn definition(crd: &OwnedCrd) -> DynamicObject {
    let mut object = CRD.object("", &format!("{}.{}", crd.plural, crd.group));
    let lower = crd.kind.to_lowercase();
    object.data = json!({"spec": {
        "group": crd.group,
        "scope": if crd.namespaced { "Namespaced" } else { "Cluster" },
        "names": {"kind": crd.kind, "listKind": format!("{}List", crd.kind), "plural": crd.plural, "singular": lower},
        "versions": [{
            "name": crd.version, "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}},
        }],
    }});
    object
}
