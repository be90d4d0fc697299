//! Which machine set to derive from, chosen on purpose.

use std::collections::BTreeSet;

use super::{MachineCause, available, field_of, instance_type, is_foreign, replicas, zone};
use crate::Object;

const ROLE_LABEL: &str = "machine.openshift.io/cluster-api-machine-role";

/// Machine sets to derive from, one per zone, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Bases {
    /// In the order they are to be tried.
    pub order: Vec<Object>,
    /// Why the first is the first, in words.
    pub because: String,
    /// All candidates, for `--base-machineset`.
    pub candidates: Vec<String>,
}

/// The machine sets a new one can be derived from: those of workers whose platform has instance types. First those with
/// nodes that work, without taints, by name; one per zone. `asked` restricts it to that one.
pub fn bases(sets: &[Object], asked: Option<&str>) -> Result<Bases, MachineCause> {
    let workers: Vec<&Object> = sets.iter().filter(|set| !set.is_deleting() && role(set) == Some("worker")).collect();
    if workers.is_empty() {
        return Err(MachineCause::NoWorkerSets { others: sets.len() });
    }
    let mut candidates: Vec<&Object> = workers.iter().copied().filter(|set| instance_type(set).is_some()).collect();
    if candidates.is_empty() {
        // Every worker set is of a platform without types; the refusal names it.
        let refusal = workers.iter().find_map(|set| field_of(set).err());
        return Err(refusal.unwrap_or(MachineCause::NoWorkerSets { others: 0 }));
    }
    candidates.sort_by_key(|set| (available(set) == 0, has_taints(set), replicas(set) == 0, set.name().to_owned()));
    let names: Vec<String> = candidates.iter().map(|set| set.name().to_owned()).collect();
    if let Some(asked) = asked {
        let Some(base) = candidates.iter().find(|set| set.name() == asked) else {
            let mut candidates = names;
            candidates.sort();
            return Err(MachineCause::UnknownBase { asked: asked.to_owned(), candidates });
        };
        if is_foreign(base) {
            return Err(MachineCause::ClusterApi);
        }
        return Ok(Bases {
            order: vec![(*base).clone()],
            because: "asked for with --base-machineset".to_owned(),
            candidates: names,
        });
    }
    candidates.retain(|set| !is_foreign(set));
    let mut zones = BTreeSet::new();
    let order: Vec<Object> = candidates
        .iter()
        .filter(|set| zones.insert(zone(set).unwrap_or_default().to_owned()))
        .map(|set| (*set).clone())
        .collect();
    let Some(first) = order.first() else {
        return Err(MachineCause::ClusterApi);
    };
    let because = format!(
        "first of {} by working nodes, no taints, name{}",
        names.len(),
        match zone(first) {
            Some(zone) => format!("; zone {zone}"),
            None => String::new(),
        }
    );
    Ok(Bases { order, because, candidates: names })
}

fn role(set: &Object) -> Option<&str> {
    set.at("/spec/template/metadata/labels")?.get(ROLE_LABEL)?.as_str()
}

fn has_taints(set: &Object) -> bool {
    !set.list("/spec/template/spec/taints").is_empty()
}
