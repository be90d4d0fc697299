//! The wide capture that a CI keeps besides the narrow one: every object of the operator's namespaces, by kind.

use futures::future::join_all;
use toolbox_core::cluster::{Cluster, Object, Query, kinds};
use toolbox_core::engine::plan::{Act, Effect, Kind};
use toolbox_core::engine::{Plan, Step};

use super::collect::{Collector, Missing};
use crate::locate::{Hints, Traces};
use crate::names;

/// Kinds in the operator's and the operands' namespaces. Secrets are not among them.
const NAMESPACED: [&Kind; 11] = [
    &kinds::POD,
    &kinds::DAEMON_SET,
    &kinds::DEPLOYMENT,
    &kinds::REPLICA_SET,
    &kinds::SERVICE,
    &kinds::CONFIG_MAP,
    &kinds::EVENT,
    &kinds::SUBSCRIPTION,
    &kinds::INSTALL_PLAN,
    &kinds::CSV,
    &kinds::OPERATOR_GROUP,
];

/// Kinds without a namespace.
const CLUSTER_WIDE: [&Kind; 4] =
    [&kinds::NODE, &kinds::CLUSTER_POLICY, &kinds::CLUSTER_VERSION, &kinds::CLUSTER_OPERATOR];

/// Adds the finalizer that gathers.
pub fn must_gather_finalizer(plan: &mut Plan, cluster: &Cluster, hints: &Hints) {
    let describe = NAMESPACED.iter().chain(&CLUSTER_WIDE).fold(
        crate::asking("gpu-operator.must-gather", "every object of the operator's namespaces is saved"),
        |spec, kind| spec.does(Effect::any(Act::Read, kind, None)),
    );
    let (cluster, hints) = (cluster.clone(), hints.clone());
    plan.finalizer(describe, move |cx| async move {
        let collector = Collector::new(&cx, &cluster, "");
        let namespaces = Box::pin(namespaces(&collector, &cluster, &hints)).await;
        let all = &collector;
        let wide = CLUSTER_WIDE.iter().map(|kind| {
            let file = format!("cluster-scoped/{}.yaml", kind.full_name());
            keep(all, Query::all(kind), file)
        });
        let narrow = namespaces.iter().flat_map(|namespace| {
            NAMESPACED.iter().map(move |kind| {
                let file = format!("namespaces/{namespace}/{}.yaml", kind.full_name());
                keep(all, Query::within(kind, namespace), file)
            })
        });
        tokio::join!(join_all(wide.collect::<Vec<_>>()), join_all(narrow.collect::<Vec<_>>()));
        let gathered = collector.finish(None);
        let missing: Vec<String> =
            gathered.missing.iter().map(|(file, reason)| format!("{file}: {reason}\n")).collect();
        cx.file("missing.txt", missing.concat());
        let what = format!("{} files about {}", gathered.files.len(), namespaces.join(", "));
        Ok(Step::AlreadySo((), what))
    });
}

/// The namespaces to look into: those of the operator that is there, else those where it usually is.
async fn namespaces(collector: &Collector, cluster: &Cluster, hints: &Hints) -> Vec<String> {
    let traces = collector.limited("the operator", Box::pin(Traces::read(cluster))).await;
    let operator = traces.ok().and_then(|traces| traces.operator(hints).ok().flatten());
    let mut found = match operator {
        Some(operator) => vec![operator.namespace, operator.operand_namespace],
        None => vec![names::OWN_NAMESPACE.to_owned(), names::LEGACY_OPERAND_NAMESPACE.to_owned()],
    };
    found.dedup();
    found
}

async fn keep(collector: &Collector, query: Query, file: String) {
    match collector.list(&query, &[&file]).await {
        Some(objects) if objects.is_empty() => collector.missing(Missing::of(&file, "there is none")),
        Some(objects) => {
            let objects: Vec<Object> = objects;
            collector.yaml(&file, &objects);
        }
        None => {}
    }
}
