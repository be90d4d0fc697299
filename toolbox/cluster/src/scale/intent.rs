//! What is there and what is to be done about it: decided from one look, before anything is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use toolbox_core::cluster::machines::{
    self, Bases, MachineCause, bases, derived_name, instance_type, is_foreign, replicas, zone,
};
use toolbox_core::cluster::{Cluster, MANAGED_BY, MANAGER, Object, Query, kinds};
use toolbox_core::engine::{ObjectRef, Why};

use super::ScaleSpec;

/// One machine set that may hold the machines.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Try {
    /// Its name.
    pub(super) set: String,
    /// Its zone.
    pub(super) zone: Option<String>,
    /// The set to derive it from; `None` when it is there.
    pub(super) base: Option<Object>,
    /// Its replicas before; 0 for one that is to be made.
    pub(super) before: i64,
    /// Whether this program made it, or is to make it.
    pub(super) ours: bool,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Intent {
    /// Sets of the type that are right as they are, with their replicas.
    pub(super) kept: BTreeMap<String, i64>,
    /// Sets of the type that are to be emptied.
    pub(super) emptied: Vec<String>,
    /// Sets that may hold the machines, in the order they are tried. Empty when everything is right as it is.
    pub(super) tries: Vec<Try>,
    /// Base machine sets with their zones, for those who want to choose.
    pub(super) bases: Vec<(String, Option<String>)>,
    /// What was chosen and why, in words.
    pub(super) because: String,
}

impl fmt::Display for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.because)
    }
}

/// Looks at the machine sets and decides.
pub(super) async fn find(cluster: &Cluster, spec: &ScaleSpec) -> Result<Intent, Why> {
    let query = Query::within(&kinds::MACHINE_SET, machines::NAMESPACE);
    let sets = match cluster.list(&query).await {
        Ok(sets) => sets,
        Err(error) if error.is_absent() => {
            if spec.replicas == 0 {
                return Ok(nothing("this cluster has no Machine API, so there is no machine to remove"));
            }
            return Err(Why::new(query.object(), &MachineCause::NoMachineApi));
        }
        Err(error) => return Err(error.into()),
    };
    decide(&sets, spec)
}

fn nothing(because: &str) -> Intent {
    Intent { because: because.to_owned(), ..Intent::default() }
}

/// The decision, from the sets alone.
pub(super) fn decide(sets: &[Object], spec: &ScaleSpec) -> Result<Intent, Why> {
    let all = kinds::MACHINE_SET.object(Some(machines::NAMESPACE), "<any>");
    let mut of_type: Vec<&Object> = sets
        .iter()
        .filter(|set| !set.is_deleting() && instance_type(set) == Some(spec.instance_type.as_str()))
        .collect();
    // The one with most machines is the one that is kept.
    of_type.sort_by_key(|set| (std::cmp::Reverse(replicas(set)), set.name().to_owned()));
    let total: i64 = of_type.iter().map(|set| replicas(set)).sum();
    let wanted = spec.wanted();

    if of_type.is_empty() {
        if wanted == 0 {
            return Ok(nothing(&format!("there is no machine set of type {}", spec.instance_type)));
        }
        let bases = bases(sets, spec.base.as_deref()).map_err(|cause| {
            let object = match (&cause, &spec.base) {
                (MachineCause::UnknownBase { .. } | MachineCause::ClusterApi, Some(base)) => machine_set(base),
                _ => all,
            };
            Why::new(object, &cause)
        })?;
        let tries = derived(sets, &bases, spec, &BTreeSet::new());
        let first = tries.first();
        let because = format!(
            "{} is derived from {} ({})",
            first.map_or("nothing", |first| first.set.as_str()),
            bases.order.first().map_or("nothing", |base| base.name()),
            bases.because
        );
        return Ok(Intent { tries, bases: with_zones(sets, &bases), because, ..Intent::default() });
    }
    if let Some(foreign) = of_type.iter().find(|set| is_foreign(set)) {
        return Err(Why::new(foreign.refer(), &MachineCause::ClusterApi));
    }
    let holding: Vec<&Object> = of_type.iter().copied().filter(|set| replicas(set) > 0).collect();
    if total != wanted && holding.len() > 1 && !spec.force {
        let sets = holding.iter().map(|set| format!("{} ({})", set.name(), replicas(set))).collect();
        let cause = MachineCause::NeedsForce { sets, total, wanted };
        return Err(Why::new(holding[0].refer(), &cause));
    }
    let counts: Vec<String> = of_type.iter().map(|set| format!("{} ({})", set.name(), replicas(set))).collect();
    if total == wanted && holding.len() != 1 {
        return Ok(Intent {
            kept: of_type.iter().map(|set| (set.name().to_owned(), replicas(set))).collect(),
            because: format!("{total} wanted, {total} asked for already: {}", counts.join(", ")),
            ..Intent::default()
        });
    }
    Ok(with_fallbacks(sets, &of_type, spec, total == wanted, &counts))
}

/// One set of the type gets the machines; the others of the type, and derived ones in other zones, follow should its zone
/// not have them.
fn with_fallbacks(sets: &[Object], of_type: &[&Object], spec: &ScaleSpec, already: bool, counts: &[String]) -> Intent {
    let mut tries: Vec<Try> = of_type
        .iter()
        .map(|set| Try {
            set: set.name().to_owned(),
            zone: zone(set).map(str::to_owned),
            base: None,
            before: replicas(set),
            ours: set.label(MANAGED_BY) == Some(MANAGER),
        })
        .collect();
    let emptied = tries.iter().skip(1).filter(|other| other.before > 0).map(|other| other.set.clone()).collect();
    let bases = bases(sets, None).ok();
    if spec.wanted() > 0
        && let Some(bases) = &bases
    {
        let zones = tries.iter().filter_map(|one| one.zone.clone()).collect();
        tries.extend(derived(sets, bases, spec, &zones));
    }
    let first = &tries[0].set;
    let because = if already {
        format!("{} asked for already: {}", spec.replicas, counts.join(", "))
    } else {
        format!("{first} gets {} (machine sets of this type: {})", spec.replicas, counts.join(", "))
    };
    Intent {
        kept: BTreeMap::new(),
        emptied,
        tries,
        bases: bases.map(|bases| with_zones(sets, &bases)).unwrap_or_default(),
        because,
    }
}

/// The candidates, each with its zone.
fn with_zones(sets: &[Object], bases: &Bases) -> Vec<(String, Option<String>)> {
    let zone_of = |name: &str| sets.iter().find(|set| set.name() == name).and_then(zone).map(str::to_owned);
    bases.candidates.iter().map(|name| (name.clone(), zone_of(name))).collect()
}

/// A set to be derived for each base whose zone is not among `zones`.
fn derived(sets: &[Object], bases: &Bases, spec: &ScaleSpec, zones: &BTreeSet<String>) -> Vec<Try> {
    const INFRA: &str = "machine.openshift.io/cluster-api-cluster";
    bases
        .order
        .iter()
        .filter(|base| zone(base).is_none_or(|zone| !zones.contains(zone)))
        .map(|base| {
            let name = |distinct| derived_name(base.name(), &spec.instance_type, base.label(INFRA), distinct);
            let plain = name(false);
            // The plain name may be a set of another type whose machines must not be touched.
            let taken = sets.iter().any(|set| set.name() == plain);
            Try {
                set: if taken { name(true) } else { plain },
                zone: zone(base).map(str::to_owned),
                base: Some(base.clone()),
                before: 0,
                ours: true,
            }
        })
        .collect()
}

/// A machine set by name.
pub(super) fn machine_set(name: &str) -> ObjectRef {
    kinds::MACHINE_SET.object(Some(machines::NAMESPACE), name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use toolbox_core::engine::Exit;

    fn set(name: &str, size: &str, zone: &str, replicas: Option<i64>) -> Object {
        let mut set = json!({
            "apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineSet",
            "metadata": {"name": name, "namespace": machines::NAMESPACE,
                         "labels": {"machine.openshift.io/cluster-api-cluster": "demo-x7k2p"}},
            "spec": {"template": {
                "metadata": {"labels": {"machine.openshift.io/cluster-api-machine-role": "worker"}},
                "spec": {"providerSpec": {"value": {"kind": "AWSMachineProviderConfig", "instanceType": size,
                                                   "placement": {"availabilityZone": zone}}}}}},
            "status": {"availableReplicas": 1},
        });
        if let Some(replicas) = replicas {
            set["spec"]["replicas"] = json!(replicas);
        }
        Object::new(set)
    }

    fn workers() -> Vec<Object> {
        ["a", "b", "c"]
            .iter()
            .map(|zone| set(&format!("demo-x7k2p-worker-{zone}"), "m5.xlarge", zone, Some(1)))
            .collect()
    }

    fn tried(intent: &Intent) -> Vec<&str> {
        intent.tries.iter().map(|one| one.set.as_str()).collect()
    }

    #[test]
    fn a_new_type_is_derived_once_per_zone() {
        let intent = decide(&workers(), &ScaleSpec::new("g4dn.xlarge", 1)).unwrap();
        assert_eq!(
            tried(&intent),
            [
                "demo-x7k2p-worker-a--g4dn-xlarge",
                "demo-x7k2p-worker-b--g4dn-xlarge",
                "demo-x7k2p-worker-c--g4dn-xlarge"
            ]
        );
        assert!(intent.because.contains("derived from demo-x7k2p-worker-a (first of 3"), "{}", intent.because);
        let spec = ScaleSpec { base: Some("demo-x7k2p-worker-b".to_owned()), ..ScaleSpec::new("g4dn.xlarge", 1) };
        assert_eq!(tried(&decide(&workers(), &spec).unwrap()), ["demo-x7k2p-worker-b--g4dn-xlarge"]);
    }

    #[test]
    fn a_set_of_the_type_is_used_and_other_zones_follow() {
        let mut sets = workers();
        sets.push(set("demo-x7k2p-gpu-b", "g4dn.xlarge", "b", Some(0)));
        let intent = decide(&sets, &ScaleSpec::new("g4dn.xlarge", 2)).unwrap();
        assert_eq!(
            tried(&intent),
            ["demo-x7k2p-gpu-b", "demo-x7k2p-worker-a--g4dn-xlarge", "demo-x7k2p-worker-c--g4dn-xlarge"]
        );
        assert!(!intent.tries[0].ours);
    }

    #[test]
    fn an_absent_count_is_one_and_text_is_no_number() {
        let mut sets = workers();
        sets.push(set("demo-x7k2p-gpu-a", "g4dn.xlarge", "a", None));
        let intent = decide(&sets, &ScaleSpec::new("g4dn.xlarge", 1)).unwrap();
        assert!(intent.because.contains("asked for already"), "{}", intent.because);
        assert_eq!(intent.tries[0].before, 1);
    }

    #[test]
    fn a_total_over_several_sets_is_never_reached_by_half() {
        let sets = [set("gpu-a", "m5.large", "a", Some(1)), set("gpu-b", "m5.large", "b", Some(2))];
        let kept = decide(&sets, &ScaleSpec::new("m5.large", 3)).unwrap();
        assert!(kept.tries.is_empty());
        assert_eq!(kept.kept, BTreeMap::from([("gpu-a".to_owned(), 1), ("gpu-b".to_owned(), 2)]));
        let why = decide(&sets, &ScaleSpec::new("m5.large", 100)).unwrap_err();
        assert_eq!(
            why.cause,
            "3 machines of this type are spread over gpu-b (2), gpu-a (1), and 100 in one set would empty the others"
        );
        assert_eq!(why.next, "empty the others with --force, or ask for 3");
        let forced = ScaleSpec { force: true, ..ScaleSpec::new("m5.large", 100) };
        let intent = decide(&sets, &forced).unwrap();
        assert_eq!((intent.tries[0].set.as_str(), intent.emptied.as_slice()), ("gpu-b", &["gpu-a".to_owned()][..]));
    }

    #[test]
    fn none_of_a_type_that_is_not_there_is_done_already() {
        assert!(decide(&[], &ScaleSpec::new("g4dn.xlarge", 0)).unwrap().tries.is_empty());
        let why = decide(&[], &ScaleSpec::new("g4dn.xlarge", 1)).unwrap_err();
        assert_eq!(why.cause, "there is no machine set to derive from");
        assert_eq!(why.exit, Exit::Failed);
    }

    #[test]
    fn a_name_that_another_type_has_gets_a_hash() {
        let mut sets = workers();
        sets.push(set("demo-x7k2p-worker-a--a-b", "a-b", "a", Some(1)));
        let intent = decide(&sets, &ScaleSpec::new("a.b", 1)).unwrap();
        assert!(intent.tries[0].set.starts_with("demo-x7k2p-worker-a--a-b-"), "{:?}", tried(&intent));
    }
}
