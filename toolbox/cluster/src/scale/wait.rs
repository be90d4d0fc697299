//! The two waits: machines, with the next zone tried when one has none, and nodes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolbox_core::cluster::machines::{self, MachineCause, set_of};
use toolbox_core::cluster::{Cluster, Object, Query, kinds};
use toolbox_core::config::to_yaml;
use toolbox_core::engine::why::Evidence;
use toolbox_core::engine::{Cause, Step, StepCx, Verdict, Why};

use super::intent::{Intent, Try};
use super::verdict::{gone, machines_verdict, node_verdict};
use super::{Fleet, ScaleSpec, change};

/// Waits for the machines. When the zone has none left or does not sell them, the try is taken back and the next zone is
/// tried, as long as taking it back changes nothing that was there before.
pub(super) async fn machines(
    cx: &StepCx,
    cluster: &Cluster,
    spec: &ScaleSpec,
    intent: &Intent,
) -> Result<Step<Fleet>, Why> {
    let mut expected = intent.kept.clone();
    let mut tries = intent.tries.iter();
    let Some(mut current) = tries.next() else {
        let fleet = settle(cx, cluster, spec, expected).await.map_err(|unsettled| unsettled.why)?;
        let what = format!("{} machines, as before", fleet.machines.len());
        return Ok(Step::AlreadySo(fleet, what));
    };
    // What the current set is to hold: less once a set of somebody else's keeps some.
    let mut wanted = spec.wanted();
    loop {
        expected.insert(current.set.clone(), wanted);
        let unsettled = match settle(cx, cluster, spec, expected.clone()).await {
            Ok(fleet) => return empty_the_others(cx, cluster, spec, intent, fleet).await,
            Err(unsettled) => unsettled,
        };
        let set = unsettled.culprit.as_ref().and_then(set_of);
        let of_the_zone = matches!(unsettled.why.code.as_ref(), "out-of-stock" | "type-not-offered")
            && set.is_none_or(|set| set == current.set);
        let next = tries.next().filter(|_| of_the_zone && can_be_taken_back(current, wanted));
        let Some(next) = next else {
            return Err(with_other_bases(unsettled, intent, current));
        };
        let cause = &unsettled.why.cause;
        cx.note(format!("zone {}: {cause}; trying zone {} with {}", zone_of(current), zone_of(next), next.set));
        let kept = change::take_back(cx, cluster, current).await?;
        expected.remove(&current.set);
        if kept > 0 {
            expected.insert(current.set.clone(), kept);
            wanted -= kept;
        }
        change::attempt(cx, cluster, next, &spec.instance_type, wanted).await?;
        current = next;
    }
}

/// Empties the sets that are to hold none, now that the machines are there without them.
async fn empty_the_others(
    cx: &StepCx,
    cluster: &Cluster,
    spec: &ScaleSpec,
    intent: &Intent,
    fleet: Fleet,
) -> Result<Step<Fleet>, Why> {
    let others: Vec<&String> = intent.emptied.iter().filter(|set| !fleet.sets.contains_key(*set)).collect();
    let holders: Vec<&str> = fleet.sets.iter().filter(|(_, count)| **count > 0).map(|(set, _)| set.as_str()).collect();
    let what = match holders.as_slice() {
        [] => "no machine".to_owned(),
        holders => format!("{} machines in {}", fleet.machines.len(), holders.join(" and ")),
    };
    if others.is_empty() {
        return Ok(Step::AlreadySo(fleet, what));
    }
    let mut expected = fleet.sets;
    for other in others {
        change::empty(cx, cluster, other).await?;
        expected.insert(other.clone(), 0);
    }
    let fleet = settle(cx, cluster, spec, expected).await.map_err(|unsettled| unsettled.why)?;
    Ok(Step::Changed(fleet, format!("{what}, the other sets are empty")))
}

/// A set of somebody else's is left alone, failed machines and all, unless this run is what made it larger.
fn can_be_taken_back(one: &Try, wanted: i64) -> bool {
    one.ours || one.before < wanted
}

fn zone_of(one: &Try) -> &str {
    one.zone.as_deref().unwrap_or("(none)")
}

/// Names what was tried, and the base machine sets of the zones that were not, for those who want to choose one.
fn with_other_bases(unsettled: Unsettled, intent: &Intent, last: &Try) -> Why {
    let Unsettled { mut why, culprit } = unsettled;
    let failure = culprit.as_ref().and_then(machines::failure);
    let before = intent.tries.iter().take_while(|one| one.set != last.set);
    let tried: Vec<&Try> = before.chain(std::iter::once(last)).collect();
    if let Some(mut failure) = failure {
        failure.other_bases = intent
            .bases
            .iter()
            .filter(|(_, zone)| tried.iter().all(|one| one.zone != *zone))
            .map(|(base, zone)| match zone {
                Some(zone) => format!("{base} (zone {zone})"),
                None => base.clone(),
            })
            .collect();
        why.next = MachineCause::Failed(failure).next();
    }
    let tried: Vec<String> = tried.iter().map(|one| format!("{} in zone {}", one.set, zone_of(one))).collect();
    why.with("tried", tried.join(", "))
}

/// Why the machines did not come, and the one that failed, if it is one.
struct Unsettled {
    why: Why,
    culprit: Option<Object>,
}

async fn settle(
    cx: &StepCx,
    cluster: &Cluster,
    spec: &ScaleSpec,
    expected: BTreeMap<String, i64>,
) -> Result<Fleet, Unsettled> {
    if expected.is_empty() {
        return Ok(Fleet::default());
    }
    let sets = cluster.watch(Query::within(&kinds::MACHINE_SET, machines::NAMESPACE));
    let all = cluster.watch(Query::within(&kinds::MACHINE, machines::NAMESPACE));
    diagnose(cx, cluster, expected.keys().cloned().collect());
    let found = cx
        .wait(sets.changes().and(all.changes()), || {
            sets.judge(|sets| Verdict::Done(sets.to_vec()))
                .and_then(|sets| all.judge(|all| machines_verdict(&expected, &spec.instance_type, &sets, all)))
        })
        .await
        .map_err(|why| {
            let culprit = all.objects().into_iter().find(|machine| machine.name() == why.object.name);
            Unsettled { why, culprit }
        })?;
    Ok(Fleet { sets: expected, machines: found.iter().map(|machine| machine.name().to_owned()).collect() })
}

/// Waits for the nodes of the machines.
pub(super) async fn nodes(
    cx: &StepCx,
    cluster: &Cluster,
    spec: &ScaleSpec,
    fleet: &Fleet,
) -> Result<Step<Vec<String>>, Why> {
    if fleet.machines.is_empty() {
        return Ok(Step::AlreadySo(Vec::new(), "there is none to wait for".to_owned()));
    }
    let machines = cluster.watch(Query::within(&kinds::MACHINE, machines::NAMESPACE));
    let nodes = cluster.watch(Query::all(&kinds::NODE));
    diagnose(cx, cluster, fleet.sets.keys().cloned().collect());
    let found = cx
        .wait(machines.changes().and(nodes.changes()), || {
            machines
                .judge(|all| Verdict::Done(all.to_vec()))
                .and_then(|all| nodes.judge(|nodes| fleet_verdict(fleet, spec, &all, nodes)))
        })
        .await?;
    let what = format!("{} nodes are Ready: {}", found.len(), found.join(", "));
    Ok(Step::AlreadySo(found, what))
}

fn fleet_verdict(fleet: &Fleet, spec: &ScaleSpec, all: &[Object], nodes: &[Object]) -> Verdict<Vec<String>> {
    let verdicts = fleet.machines.iter().map(|name| {
        let Some(machine) = all.iter().find(|machine| machine.name() == name) else {
            return Verdict::Pending(gone(name));
        };
        // A machine may fail after the cloud has made it.
        if let Some(failure) = machines::failure(machine) {
            let cause = MachineCause::Failed(failure);
            return Verdict::Failed(Why::new(machine.refer(), &cause));
        }
        node_verdict(machine, nodes, &spec.instance_type)
    });
    Verdict::all(verdicts)
}

/// On failure: every machine of the sets with its state as evidence, and whole as files.
fn diagnose(cx: &StepCx, cluster: &Cluster, sets: Vec<String>) {
    let (cx, cluster) = (cx.clone(), cluster.clone());
    cx.clone().diagnose_with(move || async move {
        let query = Query::within(&kinds::MACHINE, machines::NAMESPACE);
        let all = cluster.list(&query).await.unwrap_or_default();
        let mut evidence = Vec::new();
        for set in &sets {
            let ours: Vec<&Object> = all.iter().filter(|machine| set_of(machine) == Some(set)).collect();
            let items: Vec<&Value> = ours.iter().map(|machine| machine.value()).collect();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            if let Ok(text) = to_yaml(&list) {
                cx.file(&format!("machines_{set}.yml"), text);
            }
            evidence.extend(
                ours.iter()
                    .map(|machine| Evidence { label: format!("Machine {}", machine.name()), text: state(machine) }),
            );
        }
        evidence
    });
}

fn state(machine: &Object) -> String {
    let phase = machine.text("/status/phase").unwrap_or("no phase");
    let node = machine.text("/status/nodeRef/name").unwrap_or("no node");
    let error: Vec<&str> =
        ["/status/errorReason", "/status/errorMessage"].into_iter().filter_map(|path| machine.text(path)).collect();
    if error.is_empty() { format!("{phase}, {node}") } else { format!("{phase}, {node}, {}", error.join(": ")) }
}
