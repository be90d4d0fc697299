//! What is asked for when an operator is to be installed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use toolbox_engine::StepCx;

use crate::olm::{PackageRef, Wish};

/// Who approves the InstallPlan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// We do, and only the right one.
    #[default]
    Manual,
    /// OLM does, now and for every later version.
    Automatic,
}

impl Approval {
    /// As the Subscription spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Approval::Manual => "Manual",
            Approval::Automatic => "Automatic",
        }
    }
}

/// An operator to be installed.
#[derive(Clone)]
pub struct InstallSpec {
    /// Prefix of the steps' ids: `nfd`.
    pub id: &'static str,
    /// What people call it: `NFD`.
    pub title: &'static str,
    /// The package and its catalog.
    pub package: PackageRef,
    /// The channel and version asked for.
    pub wish: Wish,
    /// The namespace asked for.
    pub namespace: Option<String>,
    /// The namespace when none is asked for and the bundle suggests none.
    pub fallback_namespace: &'static str,
    /// Labels that the namespace is to have.
    pub namespace_labels: BTreeMap<String, String>,
    /// The OperatorGroup's name, if one has to be made.
    pub group: &'static str,
    /// Who approves.
    pub approval: Approval,
    /// Also approve a plan that holds other operators.
    pub approve_strangers: bool,
    /// Name of the wait for the CSV.
    pub csv_wait: &'static str,
    /// How long the catalog may take.
    pub package_deadline: Duration,
    /// How long the InstallPlan may take.
    pub plan_deadline: Duration,
    /// How long the CSV may take.
    pub csv_deadline: Duration,
    /// Keeps the PackageManifest as files, in the formats of the tool.
    pub keep_package: Option<fn(&StepCx, &Value)>,
}

impl InstallSpec {
    /// The usual deadlines, manual approval, nothing else asked for.
    pub fn new(id: &'static str, title: &'static str, package: PackageRef) -> Self {
        Self {
            id,
            title,
            package,
            wish: Wish::default(),
            namespace: None,
            fallback_namespace: id,
            namespace_labels: BTreeMap::new(),
            group: id,
            approval: Approval::Manual,
            approve_strangers: false,
            csv_wait: "csv",
            package_deadline: Duration::from_secs(450),
            plan_deadline: Duration::from_secs(600),
            csv_deadline: Duration::from_secs(1200),
            keep_package: None,
        }
    }
}
