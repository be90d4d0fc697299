//! What is to be installed where, and what is done about what is there: decided before the first change.

use std::fmt;

use serde::{Deserialize, Serialize};
use toolbox_engine::{StepCx, Why};

use super::spec::InstallSpec;
use crate::olm::{
    Chosen, Existing, GLOBAL_NAMESPACE, GroupRule, OlmCause, Package, Placement, choose, existing_rule, group_rule,
    orphan_csvs, place,
};
use crate::{Cluster, Object, Query, kinds};

/// What is done about the Subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// There is none: create it.
    Create,
    /// It is what was asked for.
    Adopt {
        /// Its name.
        subscription: String,
        /// Why, in words.
        because: String,
    },
    /// It is changed to what was asked for.
    Upgrade {
        /// Its name.
        subscription: String,
        /// How, in words.
        because: String,
    },
}

/// What is to be installed where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The version.
    pub chosen: Chosen,
    /// Namespace and scope.
    pub placement: Placement,
    /// What is done about the Subscription.
    pub action: Action,
    /// The Subscription's name.
    pub subscription: String,
    /// Whether the namespace is there.
    pub namespace_exists: bool,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} from channel {} in {} ({}; namespace {})",
            self.chosen.published.csv,
            self.chosen.channel,
            self.placement.namespace,
            self.chosen.because,
            self.placement.because
        )?;
        match &self.action {
            Action::Create => Ok(()),
            Action::Adopt { because, .. } | Action::Upgrade { because, .. } => {
                write!(f, "; {because}")
            }
        }
    }
}

/// Decides, and refuses what cannot work.
pub(super) async fn aim(cx: &StepCx, cluster: &Cluster, spec: &InstallSpec, package: &Package) -> Result<Target, Why> {
    let package_object = kinds::PACKAGE_MANIFEST.object(Some(&spec.package.catalog_namespace), &spec.package.name);
    let fresh = choose(package, &spec.wish).map_err(|cause| Why::new(package_object.clone(), &cause))?;
    // A resumed run installs the version that it chose then, also if the catalog has a newer one now.
    let chosen: Chosen = cx.decide(&format!("{}.version", spec.id), || fresh);

    let subscriptions = cluster.list(&Query::all(&kinds::SUBSCRIPTION)).await?;
    let rule = existing_rule(&subscriptions, &spec.package, &spec.wish, &chosen, spec.namespace.as_deref());
    let (action, chosen, asked) = match rule {
        Existing::None => (Action::Create, chosen, spec.namespace.clone()),
        Existing::Adopt(subscription, because) => {
            let action = Action::Adopt { subscription: subscription.name().to_owned(), because };
            let chosen = adopted(&subscription, chosen);
            (action, chosen, subscription.namespace().map(str::to_owned))
        }
        Existing::Upgrade(subscription, because) => {
            let action = Action::Upgrade { subscription: subscription.name().to_owned(), because };
            (action, chosen, subscription.namespace().map(str::to_owned))
        }
        Existing::Refuse(refusal) => {
            let (subscription, cause) = *refusal;
            return Err(Why::new(subscription.refer(), &cause));
        }
    };
    let mut placement =
        place(&chosen, asked.as_deref(), spec.fallback_namespace).map_err(|cause| Why::new(package_object, &cause))?;
    if action != Action::Create {
        "its Subscription is there".clone_into(&mut placement.because);
    }
    let namespace = placement.namespace.as_str();
    let namespace_exists =
        namespace == GLOBAL_NAMESPACE || cluster.get(&kinds::NAMESPACE, None, namespace).await?.is_some();
    if namespace_exists {
        let groups = cluster.list(&Query::within(&kinds::OPERATOR_GROUP, namespace)).await?;
        if let GroupRule::Refuse(refusal) = group_rule(&groups, &placement, &chosen) {
            return Err(group_refusal(*refusal, namespace));
        }
        let csvs = cluster.list(&Query::within(&kinds::CSV, namespace)).await?;
        if let Some(orphan) = orphan_csvs(&csvs, &subscriptions, &spec.package).first()
            && action == Action::Create
        {
            let remove = format!("kubectl delete {} {} -n {namespace}", kinds::CSV.full_name(), orphan.name());
            return Err(Why::new(orphan.refer(), &OlmCause::OrphanCsv { remove }));
        }
    }
    let subscription = match &action {
        Action::Create => spec.package.name.clone(),
        Action::Adopt { subscription, .. } | Action::Upgrade { subscription, .. } => subscription.clone(),
    };
    Ok(Target { chosen, placement, action, subscription, namespace_exists })
}

/// An adopted Subscription keeps the version it has, or the one it was made for.
fn adopted(subscription: &Object, mut chosen: Chosen) -> Chosen {
    let installed = ["/status/installedCSV", "/spec/startingCSV", "/status/currentCSV"]
        .into_iter()
        .find_map(|path| subscription.text(path).filter(|csv| !csv.is_empty()));
    if let Some(csv) = installed
        && csv != chosen.published.csv
    {
        csv.clone_into(&mut chosen.published.csv);
        chosen.published.version = crate::olm::version_of(csv);
        "it is what its Subscription has".clone_into(&mut chosen.because);
    }
    if let Some(channel) = subscription.text("/spec/channel").filter(|name| !name.is_empty() && *name != chosen.channel)
    {
        channel.clone_into(&mut chosen.channel);
        chosen.older = None;
    }
    chosen
}

/// A refusal about groups, said of the group or, when it is about several or none, of the namespace.
pub(super) fn group_refusal(refusal: (Option<Object>, OlmCause), namespace: &str) -> Why {
    let (group, cause) = refusal;
    let object = group.map_or_else(|| kinds::NAMESPACE.object(None, namespace), |group| group.refer());
    Why::new(object, &cause)
}
