//! The flow as a story: probes, what they make necessary, the operator meanwhile, then the waits, then the burn.

use serde_json::json;
use tool_cluster::ScaleSpec;
use tool_gpu_operator::{CaptureSpec, Hints};
use tool_nfd::Labels;
use toolbox_core::cluster::{Cluster, Object, Query, kinds, nodes};
use toolbox_core::engine::plan::{Act, After, Effect, Out};
use toolbox_core::engine::{Guard, Plan, Report, Step, StepSpec};
use toolbox_core::{FlowPart, VerbEnv, VerbName};

use super::{FLOW, OperatorHubFlow, records};
use crate::context::CiContext;

/// How long a step that only asks may take: an API server that restarts or throttles comes back within it.
const ASK: std::time::Duration = std::time::Duration::from_secs(180);

pub(super) fn plan(flow: &OperatorHubFlow, env: &VerbEnv, context: CiContext) -> Plan {
    let cluster = &env.cluster;
    let mut plan = Plan::new(FLOW);
    records::context_step(&mut plan, cluster, context);
    let _ = tool_cluster::capture_environment_steps(&mut plan, cluster, After::nothing());

    let no_labels = nfd_probe(&mut plan, cluster);
    let no_gpu = gpu_probe(&mut plan, cluster);
    let scale = ScaleSpec::new(flow.instance_type.clone(), 1);
    let scaled = plan.when(&no_gpu, "cluster.scaled", |plan| {
        tool_cluster::scale_steps(plan, cluster, &scale, After::nothing()).nodes
    });
    let nfd = plan.when(&no_labels, "nfd.deployed", |plan| {
        let spec = tool_nfd::DeploySpec::default();
        tool_nfd::deploy_steps(plan, cluster, &spec, After::nothing()).operands
    });
    let deployed = tool_gpu_operator::deploy_steps(&mut plan, cluster, &flow.deploy, After::nothing());

    let labelled = {
        let after = After::nothing().and(&scaled).and(&nfd);
        tool_nfd::wait_steps(&mut plan, cluster, Labels::Gpu, after)
    };
    let ready = {
        let after = After::nothing().and(&labelled).and(&deployed.policy);
        tool_gpu_operator::wait_steps(&mut plan, cluster, deployed.operator, after)
    };
    let burnt = tool_gpu_operator::burn_steps(&mut plan, cluster, &flow.burn, ready.done());

    tool_gpu_operator::must_gather_finalizer(&mut plan, cluster, &Hints::default());
    let capture = CaptureSpec { asked: flow.deploy.wish.version.clone(), ..CaptureSpec::default() };
    tool_gpu_operator::capture_finalizer(&mut plan, cluster, &capture);
    records::versions_finalizer(&mut plan, cluster);

    let both =
        plan.step(StepSpec::ask("prow.result", "what was tested"), (ready, burnt), |_, (ready, burnt)| async move {
            let text = format!("GPU Operator {}: {}", ready.version, burnt.report().text);
            let json = json!({"operator": ready.version, "burn": burnt.report().json});
            let report = Report { text: text.clone(), json };
            Ok(Step::AlreadySo(report, text))
        });
    plan.answer(&both, Clone::clone);
    plan
}

/// NFD is needed when no node has its labels.
fn nfd_probe(plan: &mut Plan, cluster: &Cluster) -> Out<Guard> {
    let describe = StepSpec::ask("nfd.probe-labels", "whether NFD has labelled a node")
        .deadline(ASK)
        .does(Effect::any(Act::Read, &kinds::NODE, None));
    let cluster = cluster.clone();
    plan.step(describe, (), |cx, ()| async move {
        let found = cluster.list(&Query::all(&kinds::NODE)).await?;
        let labelled = found.iter().filter(|node| nodes::has_nfd_labels(node)).count();
        if labelled == 0 {
            cx.file("EXPECTED_FAIL", "Checking if the cluster had NFD labels\n");
            return Ok(Step::AlreadySo(Guard::Needed, "no node has NFD's labels".to_owned()));
        }
        let what = format!("{labelled} nodes have NFD's labels");
        Ok(Step::AlreadySo(Guard::NotNeeded(what.clone()), what))
    })
}

/// A GPU node is needed when there is none. Before NFD has labelled anything, a node's instance type tells.
fn gpu_probe(plan: &mut Plan, cluster: &Cluster) -> Out<Guard> {
    let describe = StepSpec::ask("nfd.probe-gpu", "whether the cluster has a GPU node")
        .deadline(ASK)
        .does(Effect::any(Act::Read, &kinds::NODE, None));
    let cluster = cluster.clone();
    plan.step(describe, (), |cx, ()| async move {
        let found = cluster.list(&Query::all(&kinds::NODE)).await?;
        let gpu = found.iter().find(|node| has_gpu(node) && !node.is_deleting());
        if let Some(node) = gpu {
            let what = format!("{} is a GPU node", node.name());
            return Ok(Step::AlreadySo(Guard::NotNeeded(what.clone()), what));
        }
        cx.file("EXPECTED_FAIL", "Checking if the cluster had GPU nodes\n");
        Ok(Step::AlreadySo(Guard::Needed, "no node is a GPU node".to_owned()))
    })
}

fn has_gpu(node: &Object) -> bool {
    nodes::is_gpu_node(node)
        || node.label(nodes::GPU_PRESENT) == Some("true")
        || nodes::instance_type(node).is_some_and(is_gpu_type)
}

/// Whether a cloud sells this type with NVIDIA GPUs.
fn is_gpu_type(instance_type: &str) -> bool {
    let family = instance_type.split(['.', '-', '_']).next().unwrap_or_default();
    let aws = ["p2", "p3", "p3dn", "p4d", "p4de", "p5", "g3", "g3s", "g4dn", "g5", "g6", "g6e"];
    let others = ["Standard_NC", "Standard_ND", "Standard_NV", "a2-", "a3-", "g2-standard"];
    aws.contains(&family) || others.iter().any(|prefix| instance_type.starts_with(prefix))
}

/// The verbs that the flow is composed of, in the order in which they would be run one by one.
pub(super) fn parts(flow: &OperatorHubFlow) -> Vec<FlowPart> {
    let part = |group: &str, command: &str, prefixes: &[&'static str], words: &[&str]| FlowPart {
        name: VerbName::new(group, command),
        prefixes: prefixes.to_vec(),
        command: std::iter::once("tbx").chain(words.iter().copied()).map(str::to_owned).collect(),
    };
    let mut deploy = vec!["gpu-operator", "deploy-from-operatorhub"];
    for (flag, value) in [("--version", &flow.deploy.wish.version), ("--channel", &flow.deploy.wish.channel)] {
        if let Some(value) = value {
            deploy.extend([flag, value.as_str()]);
        }
    }
    let runtime = flow.burn.runtime.as_secs().to_string();
    let waits = [
        "gpu-operator.gpu-nodes",
        "gpu-operator.policy-exists",
        "gpu-operator.driver",
        "gpu-operator.operands",
        "gpu-operator.capacity",
        "gpu-operator.ready",
        "gpu-operator.monitoring",
        "gpu-operator.stack",
    ];
    vec![
        part("cluster", "capture_environment", &["cluster.capture-environment"], &["cluster", "capture-environment"]),
        part("nfd", "has_labels", &["nfd.probe-labels"], &["nfd", "has-labels"]),
        part("nfd_operator", "deploy_from_operatorhub", &["nfd."], &["nfd", "deploy"]),
        part("nfd", "has_gpu_nodes", &["nfd.probe-gpu"], &["nfd", "has-gpu-nodes"]),
        part("cluster", "set_scale", &["cluster."], &["cluster", "scale", &flow.instance_type, "1"]),
        part("nfd", "wait_gpu_nodes", &["nfd.gpu-label"], &["nfd", "wait-gpu-nodes"]),
        part("gpu_operator", "deploy_from_operatorhub", &["gpu-operator."], &deploy),
        part("gpu_operator", "wait_deployment", &waits, &["gpu-operator", "wait-deployment"]),
        part(
            "gpu_operator",
            "run_gpu_burn",
            &["gpu-operator.burn"],
            &["gpu-operator", "run-gpu-burn", "--runtime", &runtime],
        ),
        part(
            "gpu-operator",
            "must_gather",
            &["gpu-operator.must-gather"],
            &["gpu-operator", "capture-deployment-state"],
        ),
        part(
            "gpu_operator",
            "capture_deployment_state",
            &["gpu-operator.capture"],
            &["gpu-operator", "capture-deployment-state"],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_with_gpus_are_known_by_family() {
        for yes in ["g4dn.xlarge", "p3.2xlarge", "Standard_NC4as_T4_v3", "a2-highgpu-1g"] {
            assert!(is_gpu_type(yes), "{yes}");
        }
        for no in ["m5.xlarge", "c5.large", "Standard_D4s_v3", "n1-standard-4", "gp2"] {
            assert!(!is_gpu_type(no), "{no}");
        }
    }
}
