//! The custom resource that makes an operator do its work, taken from the examples of the CSV just installed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use toolbox_engine::plan::{Act, Effect, Kind, Out};
use toolbox_engine::{Plan, Step, StepCx, StepSpec, Why};

use super::install::Installed;
use crate::olm::OlmCause;
use crate::{Applied, Cluster, Object, Query, conditions, kinds};

/// Between two tries of a create that the server is not ready for.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// Changes the example before it is created; gets the example and the operator's namespace.
pub type Change = Arc<dyn Fn(&StepCx, Value, &str) -> Result<Value, Why> + Send + Sync>;

/// A custom resource to be made.
#[derive(Clone)]
pub struct InstanceSpec {
    /// Prefix of the steps' ids.
    pub id: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Its kind. An example of another version of the same group is taken as well.
    pub kind: Kind,
    /// How the example is changed, if at all.
    pub change: Option<Change>,
    /// How long the API may take until it accepts it.
    pub deadline: Duration,
}

/// Adds the steps that wait for the CRD and create the instance. One that is there, in whatever namespace, is kept as it
/// is, and no second one is made.
pub fn instance(plan: &mut Plan, cluster: &Cluster, spec: InstanceSpec, installed: &Installed) -> Out<Object> {
    let crd = kind_is_served(plan, cluster, (spec.id, &spec.kind), spec.deadline, installed);
    let describe = StepSpec::change(&format!("{}.instance", spec.id), spec.title)
        .deadline(spec.deadline)
        .does(Effect::any(Act::Read, &spec.kind, None))
        .does(Effect::decided(Act::Apply, &spec.kind, None, "the CSV's examples"));
    let cluster = cluster.clone();
    let needs = (installed.namespace, installed.csv, crd);
    plan.step(describe, needs, |cx, (namespace, csv, _)| async move {
        let there = match cluster.list(&Query::all(&spec.kind)).await {
            Ok(objects) => objects,
            Err(error) if error.is_not_served() => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        if let Some(object) = there.iter().find(|object| !object.is_deleting()) {
            let what = format!("{} is there and stays as it is", object.refer());
            return Ok(Step::AlreadySo(object.clone(), what));
        }
        let mut object = example(&csv, &spec.kind)?;
        if spec.kind.namespaced {
            object["metadata"]["namespace"] = namespace.as_str().into();
        }
        if let Some(change) = &spec.change {
            object = change(&cx, object, &namespace)?;
        }
        let object = create(&cx, &cluster, object, None).await?.object;
        let what = format!("created {}", object.refer());
        Ok(Step::Changed(object, what))
    })
}

/// Adds the step that waits, once the operator is installed, until the API knows a kind that it brings.
pub fn kind_is_served(
    plan: &mut Plan,
    cluster: &Cluster,
    (id, kind): (&str, &Kind),
    deadline: Duration,
    installed: &Installed,
) -> Out<()> {
    let name = format!("{}.{}", kind.plural, kind.group);
    let describe = StepSpec::wait(&format!("{id}.crd"), format!("the API knows {}", kind.kind), deadline)
        .does(Effect::on(Act::Watch, &kinds::CRD, None, &name));
    let cluster = cluster.clone();
    plan.step(describe, installed.csv, |cx, _| async move {
        let query = Query::named(&kinds::CRD, None, &name);
        let meant = query.object();
        let watched = cluster.watch(query);
        cx.wait(watched.changes(), || {
            watched.judge_one(|found| conditions::crd_established(found, &meant).map(|_| ()))
        })
        .await?;
        Ok(Step::AlreadySo((), format!("{name} is served")))
    })
}

/// The CSV's example of this kind and group; the order of the examples says nothing.
pub(super) fn example(csv: &Object, kind: &Kind) -> Result<Value, Why> {
    let examples: Vec<Value> =
        csv.annotation("alm-examples").and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let group = |example: &Value| {
        let api_version = example["apiVersion"].as_str().unwrap_or_default();
        api_version.split_once('/').map_or("", |(group, _)| group).to_owned()
    };
    let found = examples.iter().find(|example| example["kind"] == *kind.kind && group(example) == kind.group);
    found.cloned().ok_or_else(|| {
        let others = examples.iter().filter_map(|example| example["kind"].as_str().map(str::to_owned)).collect();
        Why::new(csv.refer(), &OlmCause::NoExample { kind: kind.kind.to_string(), others })
    })
}

/// Creates a custom resource of an operator that was just installed. For some seconds after its CSV has succeeded, its API
/// answers 404, and then its webhook 500. Both pass; everything else, a refused object above all, is final. `asked` is what
/// of the object was asked for and does not come from an example.
pub async fn create(cx: &StepCx, cluster: &Cluster, object: Value, asked: Option<&Value>) -> Result<Applied, Why> {
    loop {
        match cluster.apply_example(cx, object.clone(), asked).await {
            Ok(applied) => return Ok(applied),
            Err(why) if passes(&why) && !cx.dry() => {
                cx.pending(why);
                cx.clock().sleep(TRY_AGAIN).await;
            }
            Err(why) => return Err(why),
        }
    }
}

/// Whether an apply's failure is one of those that end by themselves.
pub(super) fn passes(why: &Why) -> bool {
    match why.code.as_ref() {
        "kind-not-served" | "not-found" => true,
        // The server wraps a webhook's silence in its own 500.
        "api-error" => why.cause.contains("failed calling webhook"),
        _ => false,
    }
}
