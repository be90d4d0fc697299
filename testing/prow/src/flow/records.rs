//! What a flow leaves at the root of the artifact directory for existing readers: versions and metadata.

use std::time::Duration;

use serde_json::json;
use tool_cluster::OWN_VERSION;
use tool_gpu_operator::{Hints, find_operator};
use toolbox_core::cluster::Cluster;
use toolbox_core::engine::plan::Out;
use toolbox_core::engine::{Plan, Step, StepSpec};

use crate::context::CiContext;

/// Adds the step that records which job this is, on which cluster.
pub(super) fn context_step(plan: &mut Plan, cluster: &Cluster, context: CiContext) {
    let cluster = cluster.clone();
    let describe = StepSpec::ask("prow.context", "which job this is");
    let _: Out<()> = plan.step(describe, (), |cx, ()| async move {
        for note in &context.notes {
            cx.note(note.clone());
        }
        cx.file("ci_artifact.git_version", format!("{OWN_VERSION}\n"));
        let info = cluster.info();
        let version = info.openshift_version.as_deref().unwrap_or("MISSING");
        cx.file("ocp.version", format!("{version}\n"));
        cx.version("openshift", None, info.openshift_version.as_deref());
        let lines = context.lines();
        let what = if lines.is_empty() {
            "no CI: nothing in the environment names a job".to_owned()
        } else {
            lines.join("; ")
        };
        Ok(Step::AlreadySo((), what))
    });
}

/// Adds the finalizer that records which operator was tested, in the two places where a CI looks.
pub(super) fn versions_finalizer(plan: &mut Plan, cluster: &Cluster) {
    let cluster = cluster.clone();
    let describe = StepSpec::ask("prow.versions", "which operator was tested").deadline(Duration::from_secs(60));
    plan.finalizer(describe, |cx| async move {
        let operator = find_operator(&cluster, &Hints::default()).await.ok().flatten();
        let version = operator.as_ref().map_or("MISSING", |operator| operator.version.as_str());
        cx.file("operator.version", format!("{version}\n"));
        let openshift = cluster.info().openshift_version.as_deref().unwrap_or("MISSING");
        // Prow takes only text as values here.
        let metadata = json!({
            "tbx-version": env!("CARGO_PKG_VERSION"),
            "openshift-version": openshift,
            "gpu-operator-version": version,
        });
        cx.file("custom-prow-metadata.json", format!("{metadata:#}\n"));
        Ok(Step::AlreadySo((), format!("GPU Operator {version}, OpenShift {openshift}")))
    });
}
