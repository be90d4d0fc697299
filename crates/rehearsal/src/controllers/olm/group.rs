//! Operator groups, and what a CSV may make of those in its namespace.

use std::sync::Arc;

use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::controllers::kit::{Cache, Context, Controller, Kind, OPERATOR_GROUP, Read, Timers};

/// The operator group controller.
pub(crate) struct OperatorGroups;

impl Controller for OperatorGroups {
    const KINDS: &'static [Kind] = &[OPERATOR_GROUP];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for group in cache.all(OPERATOR_GROUP) {
            if group.is_deleted() {
                continue;
            }
            let namespaces = targets(&group);
            if group.at("/status/namespaces") != &json!(namespaces) {
                let status = json!({"namespaces": namespaces, "lastUpdated": context.stamp()});
                cache.status(OPERATOR_GROUP, &group, status).await?;
            }
            self.intrude(context, cache, timers, &group).await?;
        }
        Ok(())
    }
}

/// Name of the group that somebody else makes.
const INTRUDER: &str = "somebody-elses-group";

impl OperatorGroups {
    /// In namespaces where the scenario wants it, somebody else makes a group right after the first one.
    async fn intrude(
        &self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
        group: &DynamicObject,
    ) -> Result<(), kube::Error> {
        let namespace = group.namespace();
        let wanted = context.scenario.quirks.second_operator_group.iter().any(|wanted| wanted == namespace);
        if !wanted || cache.get(OPERATOR_GROUP, namespace, INTRUDER).is_some() {
            return Ok(());
        }
        if timers.passed(format!("{namespace}/intruder"), std::time::Duration::from_millis(100)) {
            let mut other = OPERATOR_GROUP.object(namespace, INTRUDER);
            other.data = json!({"spec": {"targetNamespaces": [namespace]}});
            cache.create(OPERATOR_GROUP, &other).await?;
        }
        Ok(())
    }
}

/// Namespaces that a group covers; the empty name means all.
fn targets(group: &DynamicObject) -> Vec<String> {
    let listed = group.list("/spec/targetNamespaces");
    if listed.is_empty() {
        return vec![String::new()];
    }
    listed.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// Why a CSV cannot be installed with the groups of its namespace: reason and message.
pub(super) fn objection(csv: &DynamicObject, groups: &[Arc<DynamicObject>]) -> Option<(&'static str, String)> {
    let group = match groups {
        [] => return Some(("NoOperatorGroup", "csv in namespace with no operatorgroups".to_owned())),
        [one] => one,
        _ => {
            let text = "csv created in namespace with multiple operatorgroups, can't pick one automatically";
            return Some(("TooManyOperatorGroups", text.to_owned()));
        }
    };
    let targets = targets(group);
    let (mode, doing) = match targets.as_slice() {
        [all] if all.is_empty() => ("AllNamespaces", "cannot configure to watch all namespaces"),
        [own] if own == csv.namespace() => ("OwnNamespace", "cannot configure to watch own namespace"),
        [_] => ("SingleNamespace", "cannot configure to watch other namespace"),
        _ => ("MultiNamespace", "cannot configure to watch 2 or more namespaces"),
    };
    let supported =
        csv.list("/spec/installModes").iter().any(|entry| entry["type"] == mode && entry["supported"] == true);
    (!supported).then(|| ("UnsupportedOperatorGroup", format!("{mode} InstallModeType not supported, {doing}")))
}

/// The annotations that tie a CSV to the group it is installed with.
pub(super) fn annotations(group: &DynamicObject) -> Value {
    json!({
        "olm.operatorGroup": group.name(),
        "olm.operatorNamespace": group.namespace(),
        "olm.targetNamespaces": targets(group).join(","),
    })
}
