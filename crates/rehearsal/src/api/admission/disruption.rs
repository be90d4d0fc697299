//! Disruption budgets: how many of the pods they guard may go.

use serde_json::{Value, json};

use crate::{
    api::server::State,
    store::{
        Resource,
        object::{at, is_deleting, meta, set_at},
        select::LabelSelector,
    },
};

/// Counts again what the budgets of a namespace guard.
pub(super) fn count(state: &mut State, namespace: &str) {
    let resource = Resource::new("policy", "poddisruptionbudgets");
    let budgets = state.store.list(&resource, Some(namespace));
    if budgets.is_empty() {
        return;
    }
    let pods = state.store.list(&Resource::new("", "pods"), Some(namespace));
    for (_, budget) in budgets {
        let Some(selector) = at(&budget, "spec.selector").map(LabelSelector::from_json) else { continue };
        let guarded: Vec<&Value> =
            pods.iter().map(|(_, pod)| pod.as_ref()).filter(|pod| selector.matches(pod) && !has_ended(pod)).collect();
        let expected = guarded.len();
        let healthy = guarded.iter().filter(|pod| is_ready(pod) && !is_deleting(pod)).count();
        let desired = match (at(&budget, "spec.minAvailable"), at(&budget, "spec.maxUnavailable")) {
            (Some(least), _) => share(least, expected),
            (None, Some(most)) => expected.saturating_sub(share(most, expected)),
            (None, None) => continue,
        };
        let allowed = if expected == 0 { 0 } else { healthy.saturating_sub(desired) };
        let (status, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
        let known = at(&budget, "status.conditions").and_then(|list| list.get(0));
        let since = known
            .filter(|condition| condition.get("status").and_then(Value::as_str) == Some(status))
            .and_then(|condition| condition.get("lastTransitionTime").cloned())
            .or_else(|| meta(&budget, "creationTimestamp").cloned());
        let generation = meta(&budget, "generation").cloned().unwrap_or_else(|| json!(1));
        let counted = json!({
            "observedGeneration": generation, "disruptionsAllowed": allowed, "currentHealthy": healthy,
            "desiredHealthy": desired, "expectedPods": expected,
            "conditions": [{
                "type": "DisruptionAllowed", "status": status, "observedGeneration": generation,
                "lastTransitionTime": since, "reason": reason, "message": "",
            }],
        });
        if budget.get("status") != Some(&counted) {
            let mut new = Value::clone(&budget);
            set_at(&mut new, "status", counted);
            state.store.put(&resource, new);
        }
    }
}

/// A number, or a share of a number, rounded up.
fn share(value: &Value, of: usize) -> usize {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<usize>().ok());
    match percent {
        Some(percent) => (of * percent).div_ceil(100),
        None => value.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default(),
    }
}

fn has_ended(pod: &Value) -> bool {
    let phase = at(pod, "status.phase").and_then(Value::as_str).unwrap_or_default();
    ["Succeeded", "Failed"].contains(&phase)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = at(pod, "status.conditions").and_then(Value::as_array).into_iter().flatten();
    let has = |condition: &Value, field: &str, value: &str| condition.get(field).and_then(Value::as_str) == Some(value);
    conditions.into_iter().any(|condition| has(condition, "type", "Ready") && has(condition, "status", "True"))
}
