//! What an installation consists of on this cluster, found without needing any part of it to work.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use toolbox_engine::{ObjectRef, Why};

use super::reach::Reach;
use super::uninstall::UninstallSpec;
use crate::olm::{GLOBAL_NAMESPACE, OlmCause, belongs_to};
use crate::{Cluster, MANAGED_BY, MANAGER, Object, Query, kinds};

/// What an installation consists of on this cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Where it is; `None` when nothing was found.
    pub namespace: Option<String>,
    /// Its custom resources.
    pub instances: Vec<ObjectRef>,
    /// Its Subscription, or several.
    pub subscriptions: Vec<ObjectRef>,
    /// Its CSVs, those of an unfinished upgrade too.
    pub csvs: Vec<ObjectRef>,
    /// Names of the CRDs that came with it.
    pub crds: Vec<String>,
    /// OperatorGroups that this program made.
    pub groups: Vec<ObjectRef>,
    /// The namespace, if this program made it and no other operator lives there.
    pub own_namespace: Option<ObjectRef>,
    /// Whether a Deployment of the operator is there, which can remove finalizers.
    pub operator_is_there: bool,
    /// What is left alone, and why.
    pub stays: Vec<String>,
}

impl Found {
    /// Whether there is nothing to remove.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
            && self.subscriptions.is_empty()
            && self.csvs.is_empty()
            && self.crds.is_empty()
            && self.groups.is_empty()
            && self.own_namespace.is_none()
    }
}

/// Looks for everything that belongs to the package.
pub(super) async fn find(cluster: &Cluster, spec: &UninstallSpec) -> Result<Found, Why> {
    let all_subscriptions = served(cluster.list(&Query::all(&kinds::SUBSCRIPTION)).await)?;
    let all_csvs = served(cluster.list(&Query::all(&kinds::CSV).labels("!olm.copiedFrom")).await)?;
    let subscriptions: Vec<&Object> = all_subscriptions
        .iter()
        .filter(|object| object.text("/spec/name") == Some(spec.package.name.as_str()))
        .collect();
    let csvs: Vec<&Object> = all_csvs.iter().filter(|csv| belongs_to(csv, &spec.package)).collect();
    let namespace = match &spec.namespace {
        Some(namespace) => Some(namespace.clone()),
        None => one_namespace(spec, subscriptions.iter().chain(&csvs))?,
    };
    let mut found = Found::default();
    let here = |object: &&&Object| object.namespace() == namespace.as_deref();
    found.subscriptions = subscriptions.iter().filter(here).map(|object| object.refer()).collect();
    let elsewhere: Vec<&Object> = subscriptions.iter().chain(&csvs).filter(|object| !here(object)).copied().collect();
    let csvs: Vec<&Object> = csvs.iter().filter(here).copied().collect();
    found.csvs = csvs.iter().map(|csv| csv.refer()).collect();
    let reach = reach(cluster, namespace.as_deref(), &found, &csvs).await?;
    let held = instances(cluster, spec, &reach, (&elsewhere, &all_csvs), &mut found).await?;
    crds(cluster, spec, (&csvs, &all_csvs), &held, &mut found).await?;
    if let Some(namespace) = &namespace {
        found.operator_is_there = operator_is_there(cluster, namespace, &csvs).await?;
        let strangers = all_subscriptions.iter().any(|object| {
            object.namespace() == Some(namespace) && object.text("/spec/name") != Some(spec.package.name.as_str())
        });
        surroundings(cluster, namespace, strangers, &held, &mut found).await?;
    }
    let somewhere = !found.is_empty() || spec.namespace.is_some();
    found.namespace = namespace.filter(|_| somewhere);
    Ok(found)
}

/// A kind that the cluster does not have has no objects.
fn served(result: Result<Vec<Object>, crate::ClusterError>) -> Result<Vec<Object>, Why> {
    match result {
        Err(error) if error.is_not_served() => Ok(Vec::new()),
        other => Ok(other?),
    }
}

fn one_namespace<'a>(
    spec: &UninstallSpec,
    objects: impl Iterator<Item = &'a &'a Object>,
) -> Result<Option<String>, Why> {
    let namespaces: BTreeSet<&str> = objects.filter_map(|object| object.namespace()).collect();
    let mut namespaces: Vec<String> = namespaces.into_iter().map(str::to_owned).collect();
    if namespaces.len() > 1 {
        let package = kinds::PACKAGE_MANIFEST.object(Some(&spec.package.catalog_namespace), &spec.package.name);
        return Err(Why::new(package, &OlmCause::Ambiguous { namespaces }));
    }
    // What an interrupted installation left has no Subscription yet.
    Ok(namespaces.pop().or_else(|| Some(spec.usual_namespace.to_owned())))
}

/// How far the operator reaches: nowhere when it is not installed.
async fn reach(cluster: &Cluster, namespace: Option<&str>, found: &Found, csvs: &[&Object]) -> Result<Reach, Why> {
    match namespace {
        Some(namespace) if !found.subscriptions.is_empty() || !csvs.is_empty() => {
            let groups = served(cluster.list(&Query::within(&kinds::OPERATOR_GROUP, namespace)).await)?;
            Ok(Reach::of(namespace, &groups, csvs))
        }
        _ => Ok(Reach::nowhere()),
    }
}

/// What custom resources that stay need to stay as well.
#[derive(Default)]
struct Held {
    crds: BTreeSet<String>,
    namespaces: BTreeSet<String>,
}

/// The custom resources within the operator's reach, and those that this program made. Others stay and are named.
async fn instances(
    cluster: &Cluster,
    spec: &UninstallSpec,
    reach: &Reach,
    (elsewhere, all_csvs): (&[&Object], &[Object]),
    found: &mut Found,
) -> Result<Held, Why> {
    let mut held = Held::default();
    for kind in &spec.instances {
        let crd = format!("{}.{}", kind.plural, kind.group);
        let ours = |csv: &&Object| found.csvs.iter().any(|one| one.uid.as_deref() == Some(csv.uid()));
        let owners = all_csvs.iter().filter(|csv| owned(csv).contains(&crd)).filter(|csv| !ours(csv));
        let others: BTreeSet<&str> =
            elsewhere.iter().copied().chain(owners).filter_map(|object| object.namespace()).collect();
        for object in served(cluster.list(&Query::all(kind)).await)? {
            let of_another = match object.namespace() {
                Some(namespace) => others.contains(namespace),
                None => !others.is_empty(),
            };
            if !of_another && (is_ours(&object) || reach.covers(object.namespace())) {
                found.instances.push(object.refer());
                continue;
            }
            let reason = if of_another {
                let others: Vec<&str> = others.iter().copied().collect();
                format!("which the operator in {} may serve", others.join(", "))
            } else if reach.is_nowhere() {
                "as the operator is not installed and this program did not make it".to_owned()
            } else {
                "which the operator does not serve".to_owned()
            };
            found.stays.push(format!("{}, {reason}", object.refer()));
            held.crds.insert(crd.clone());
            held.namespaces.extend(object.namespace().map(str::to_owned));
        }
    }
    Ok(held)
}

/// Names of the CRDs that a CSV owns.
fn owned(csv: &Object) -> BTreeSet<String> {
    let all = csv.list("/spec/customresourcedefinitions/owned").iter();
    all.filter_map(|crd| crd["name"].as_str().map(str::to_owned)).collect()
}

/// The CRDs of the instances and those that the CSVs own, except those that another CSV owns as well or of which objects
/// stay. Of an operator that is not installed, none goes: whose they are cannot be told.
async fn crds(
    cluster: &Cluster,
    spec: &UninstallSpec,
    (ours, all): (&[&Object], &[Object]),
    held: &Held,
    found: &mut Found,
) -> Result<(), Why> {
    let others: BTreeSet<String> =
        all.iter().filter(|csv| !ours.iter().any(|own| own.uid() == csv.uid())).flat_map(owned).collect();
    let of_instances = spec.instances.iter().map(|kind| format!("{}.{}", kind.plural, kind.group));
    let names: BTreeSet<String> = ours.iter().flat_map(|csv| owned(csv)).chain(of_instances).collect();
    let installed = !found.subscriptions.is_empty() || !ours.is_empty();
    for name in names {
        let Some(crd) = cluster.get(&kinds::CRD, None, &name).await? else { continue };
        let reason = if others.contains(&name) {
            "which another operator owns as well"
        } else if held.crds.contains(&name) {
            "of which objects stay"
        } else if !installed && !is_ours(&crd) {
            "as the operator is not installed and this program did not make it"
        } else {
            found.crds.push(name);
            continue;
        };
        found.stays.push(format!("CustomResourceDefinition {name}, {reason}"));
    }
    Ok(())
}

async fn operator_is_there(cluster: &Cluster, namespace: &str, csvs: &[&Object]) -> Result<bool, Why> {
    for csv in csvs {
        for deployment in csv.list("/spec/install/spec/deployments") {
            let Some(name) = deployment["name"].as_str() else {
                continue;
            };
            if cluster.get(&kinds::DEPLOYMENT, Some(namespace), name).await?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Group and namespace: ours go, others stay and are named.
async fn surroundings(
    cluster: &Cluster,
    namespace: &str,
    strangers: bool,
    held: &Held,
    found: &mut Found,
) -> Result<(), Why> {
    let groups = served(cluster.list(&Query::within(&kinds::OPERATOR_GROUP, namespace)).await)?;
    for group in groups {
        if !is_ours(&group) {
            found.stays.push(format!("OperatorGroup {namespace}/{}, which this program did not make", group.name()));
        } else if strangers {
            found.stays.push(format!("OperatorGroup {namespace}/{}, which other operators need", group.name()));
        } else {
            found.groups.push(group.refer());
        }
    }
    let Some(object) = cluster.get(&kinds::NAMESPACE, None, namespace).await? else {
        return Ok(());
    };
    if namespace == GLOBAL_NAMESPACE || !is_ours(&object) {
        found.stays.push(format!("Namespace {namespace}, which this program did not make"));
    } else if strangers {
        found.stays.push(format!("Namespace {namespace}, where other operators are installed"));
    } else if held.namespaces.contains(namespace) {
        found.stays.push(format!("Namespace {namespace}, as objects in it stay"));
    } else {
        found.own_namespace = Some(object.refer());
    }
    Ok(())
}

/// Whether this program created it.
fn is_ours(object: &Object) -> bool {
    object.label(MANAGED_BY) == Some(MANAGER)
}
