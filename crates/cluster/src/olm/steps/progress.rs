//! Watching an installation: one look at everything that may stop it.

use std::time::Duration;

use toolbox_engine::plan::Kind;
use toolbox_engine::{StepCx, Verdict, Why};

use super::package::catalog_log;
use super::spec::InstallSpec;
use super::target::Target;
use crate::olm::{
    OlmCause, Patience, PlanChoice, Planned, Sight, choose_plan, csv_verdict, plan_verdict, plan_written,
    subscription_verdict, wants_approval,
};
use crate::{Cluster, Object, Query, RUN, kinds};

/// Conditions with a time in them are looked at again after this without a change.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How long a plan that leads elsewhere may be what OLM wants to be approved.
const PLANS_ANEW: Duration = Duration::from_secs(30);

/// How long OLM may take an older version for the newest: it looks again some time after a change.
const NO_WAY: Duration = Duration::from_secs(120);

/// How far an installation is to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Until OLM has a plan for it and has written the plan's status, or it is there.
    Planned,
    /// Until its CSV has succeeded, or another plan wants to be approved first.
    Succeeded,
}

/// What was found at the end of the stage.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached {
    pub(super) plan: Option<Planned>,
    pub(super) csv: Option<Object>,
}

struct Look<'a> {
    spec: &'a InstallSpec,
    target: &'a Target,
    subscriptions: &'a [Object],
    groups: &'a [Object],
    plans: &'a [Object],
    csvs: &'a [Object],
    catalogs: &'a [Object],
    /// The versions between that this run has had installed.
    between: &'a [String],
    now: jiff::Timestamp,
}

/// Waits until the stage is reached. `between` are the versions that this run has approved on the way.
pub(super) async fn wait(
    cx: &StepCx,
    cluster: &Cluster,
    spec: &InstallSpec,
    target: &Target,
    stage: Stage,
    between: &[String],
) -> Result<Reached, Why> {
    let namespace = target.placement.namespace.as_str();
    let within = |kind: &Kind| cluster.watch(Query::within(kind, namespace));
    let subscriptions = cluster.watch(Query::all(&kinds::SUBSCRIPTION));
    let groups = within(&kinds::OPERATOR_GROUP);
    let plans = within(&kinds::INSTALL_PLAN);
    let csvs = within(&kinds::CSV);
    let catalogs = cluster.watch(Query::all(&kinds::CATALOG_SOURCE));
    let changes = subscriptions
        .changes()
        .and(groups.changes())
        .and(plans.changes())
        .and(csvs.changes())
        .and(catalogs.changes())
        .or_after(LOOK_AGAIN);
    {
        let (cx, cluster) = (cx.clone(), cluster.clone());
        cx.clone().diagnose_with(move || async move { catalog_log(&cx, &cluster).await });
    }
    let mut patience = Patience::default();
    let mut noted = stage == Stage::Planned || cx.dry();
    let result = cx
        .wait(changes, || {
            let all = |objects: &[Object]| Verdict::Done(objects.to_vec());
            subscriptions.judge(all).and_then(|subscriptions| {
                groups.judge(all).and_then(|groups| {
                    plans.judge(all).and_then(|plans| {
                        csvs.judge(all).and_then(|csvs| {
                            let look = Look {
                                spec,
                                target,
                                subscriptions: &subscriptions,
                                groups: &groups,
                                plans: &plans,
                                csvs: &csvs,
                                catalogs: &catalogs.objects(),
                                between,
                                now: cx.clock().now(),
                            };
                            noted = noted || look.note_csv(cx, &cluster.run_id);
                            look.judge(stage, &mut patience)
                        })
                    })
                })
            })
        })
        .await;
    match result {
        Err(why) if why.code == "bundle-unpack-failed" => Err(name_the_job(cluster, spec, why).await),
        other => other,
    }
}

impl Look<'_> {
    /// OLM makes the CSV, and not we. But when the Subscription is this run's, the CSV is what came of it, and stays when
    /// the Subscription is deleted: taking the run back has to delete both.
    fn note_csv(&self, cx: &StepCx, run: &str) -> bool {
        let Some((subscription, csv)) = self.subscription().zip(self.csv()) else { return false };
        let created = |object: &Object| object.created().and_then(|text| text.parse::<jiff::Timestamp>().ok());
        let ours = !run.is_empty() && subscription.annotation(RUN) == Some(run);
        if csv.is_deleting() || !ours || created(csv) < created(subscription) {
            return false;
        }
        cx.made(&csv.refer());
        // Once more, so that it is the first to go: OLM would bring the CSV back.
        cx.made(&subscription.refer());
        true
    }

    fn csv(&self) -> Option<&Object> {
        self.csvs.iter().find(|csv| csv.name() == self.target.chosen.published.csv)
    }

    fn subscription(&self) -> Option<&Object> {
        self.subscriptions.iter().find(|object| {
            object.name() == self.target.subscription
                && object.namespace() == Some(self.target.placement.namespace.as_str())
        })
    }

    fn judge(&self, stage: Stage, patience: &mut Patience) -> Verdict<Reached> {
        let wanted = self.target.chosen.published.csv.as_str();
        let groups: Vec<&Object> = self.groups.iter().filter(|group| !group.is_deleting()).collect();
        if groups.len() > 1 {
            let mut names: Vec<String> = groups.iter().map(|group| group.name().to_owned()).collect();
            names.sort();
            let namespace = kinds::NAMESPACE.object(None, &self.target.placement.namespace);
            return Verdict::Failed(Why::new(namespace, &OlmCause::SeveralGroups { names }));
        }
        let (csv, subscription) = (self.csv(), self.subscription());
        if let Some(csv) = csv {
            match stage {
                Stage::Succeeded => {
                    return csv_verdict(csv, patience, self.now).map(|csv| Reached { csv: Some(csv), plan: None });
                }
                Stage::Planned if is_installed(subscription, wanted) => {
                    return Verdict::Done(Reached { csv: Some(csv.clone()), plan: None });
                }
                Stage::Planned => {}
            }
        }
        let Some(subscription) = subscription else {
            let object = kinds::SUBSCRIPTION.object(Some(&self.target.placement.namespace), &self.target.subscription);
            return Verdict::Pending(Why::waiting(object, "subscription-absent", "does not exist"));
        };
        let choice = choose_plan(self.plans, subscription, &self.target.chosen);
        if let PlanChoice::Other(plan, cause) = &choice {
            let why = Why::new(plan.refer(), cause);
            // What is asked of the Subscription may have changed a moment ago, and OLM be about to plan anew.
            let stays = patience.is_over("other-plan", self.now, PLANS_ANEW);
            return if stays { Verdict::Failed(why) } else { Verdict::Pending(why) };
        }
        patience.forget("other-plan");
        match choice {
            PlanChoice::Plan(planned) if stage == Stage::Planned => {
                return plan_written(&planned.plan).map(|()| Reached { plan: Some(planned), csv: None });
            }
            PlanChoice::Plan(planned) if wants_approval(&planned.plan) => {
                // One version after the other: each may have to bring the operands of the one before along.
                let approve = |()| Verdict::Done(Reached { plan: Some(planned), csv: None });
                return self.between_is_there(subscription, patience).and_then(approve);
            }
            PlanChoice::Plan(planned) => {
                if let failed @ (Verdict::Failed(_) | Verdict::Pending(_)) = plan_verdict(&planned.plan) {
                    return failed.map(|()| Reached::default());
                }
            }
            PlanChoice::Other(..) | PlanChoice::None => {}
        }
        if let failed @ (Verdict::Failed(_) | Verdict::Pending(_)) = self.between_is_there(subscription, patience) {
            return failed.map(|()| Reached::default());
        }
        let sight = Sight { package: &self.spec.package, catalogs: self.catalogs, now: self.now };
        subscription_verdict(subscription, &sight, patience).and_then(|()| {
            if let Some(cause) = self.no_way(subscription) {
                let why = Why::new(subscription.refer(), &cause);
                let stays = patience.is_over("no-way", self.now, NO_WAY);
                return if stays { Verdict::Failed(why) } else { Verdict::Pending(why) };
            }
            patience.forget("no-way");
            let text = match stage {
                Stage::Planned => format!("OLM has no InstallPlan for {wanted} yet"),
                Stage::Succeeded => format!("OLM has not made {wanted} yet"),
            };
            Verdict::Pending(Why::waiting(subscription.refer(), "olm-at-work", text))
        })
    }
}

impl Look<'_> {
    /// Whether the version between that was installed last works. What was there before this run is OLM's affair.
    fn between_is_there(&self, subscription: &Object, patience: &mut Patience) -> Verdict<()> {
        let installed = subscription.text("/status/installedCSV").unwrap_or_default();
        let csv = self.csvs.iter().find(|csv| csv.name() == installed);
        match csv.filter(|_| self.between.iter().any(|name| name == installed)) {
            // It is on its way out as soon as the next one is there.
            Some(csv) if !csv.is_deleting() && csv.text("/status/phase") != Some("Replacing") => {
                csv_verdict(csv, patience, self.now).map(|_| ())
            }
            _ => Verdict::Done(()),
        }
    }

    /// Set when OLM says that there is nothing newer than what is installed, and that is not what was asked for.
    fn no_way(&self, subscription: &Object) -> Option<OlmCause> {
        let chosen = &self.target.chosen;
        let installed = subscription.text("/status/installedCSV").filter(|csv| chosen.published.csv != *csv)?;
        let there = subscription.text("/spec/channel").is_none_or(|channel| channel == chosen.channel);
        (there && subscription.text("/status/state") == Some("AtLatestKnown")).then(|| OlmCause::NoWay {
            installed: installed.to_owned(),
            wanted: chosen.published.csv.clone(),
            channel: chosen.channel.clone(),
        })
    }
}

fn is_installed(subscription: Option<&Object>, wanted: &str) -> bool {
    subscription.is_some_and(|subscription| subscription.text("/status/installedCSV") == Some(wanted))
}

/// Adds the failed unpack job to the cause, and what its pod says.
async fn name_the_job(cluster: &Cluster, spec: &InstallSpec, why: Why) -> Why {
    let namespace = spec.package.catalog_namespace.as_str();
    let jobs = cluster.list(&Query::within(&kinds::JOB, namespace)).await;
    let jobs = jobs.unwrap_or_default();
    let Some((name, reason)) = crate::olm::failed_job(&jobs) else {
        return why;
    };
    let pods = Query::within(&kinds::POD, namespace).labels(format!("job-name={name}"));
    let pods = cluster.list(&pods).await.unwrap_or_default();
    let image_trouble = pods.iter().find_map(|pod| {
        let mut statuses =
            pod.list("/status/initContainerStatuses").iter().chain(pod.list("/status/containerStatuses"));
        statuses.find_map(|status| status["state"]["waiting"]["message"].as_str()).map(str::to_owned)
    });
    let cause = OlmCause::BundleUnpack { message: reason, job: Some(format!("{namespace}/{name}")) };
    let mut named = Why::new(why.object.clone(), &cause).with("OLM says", why.cause);
    if let Some(trouble) = image_trouble {
        named = named.with(format!("pod of job {name}"), trouble);
    }
    named
}
