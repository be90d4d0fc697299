//! Deployments, daemon sets and jobs.

use toolbox_engine::{Cause, FailureVerdict, ObjectRef, Verdict, Why};

use super::present;
use crate::object::{Condition, Object};

/// Why a workload will not come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadCause {
    /// The deployment has given up.
    NoProgress {
        /// The controller's words.
        message: String,
    },
    /// The job has failed.
    JobFailed {
        /// `BackoffLimitExceeded`.
        reason: String,
        /// The controller's words.
        message: String,
    },
}

impl Cause for WorkloadCause {
    fn code(&self) -> &'static str {
        match self {
            WorkloadCause::NoProgress { .. } => "no-progress",
            WorkloadCause::JobFailed { .. } => "job-failed",
        }
    }
    fn text(&self) -> String {
        match self {
            WorkloadCause::NoProgress { message } => format!("makes no progress: {message}"),
            WorkloadCause::JobFailed { reason, message } if message.is_empty() => format!("has failed: {reason}"),
            WorkloadCause::JobFailed { reason, message } => format!("has failed: {reason}: {message}"),
        }
    }
    fn next(&self) -> String {
        match self {
            WorkloadCause::NoProgress { .. } => "look at its pods and their events".to_owned(),
            WorkloadCause::JobFailed { .. } => "look at the logs of its pods".to_owned(),
        }
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Product
    }
}

fn pending<T>(object: &Object, code: &'static str, text: impl Into<String>) -> Verdict<T> {
    Verdict::Pending(Why::waiting(object.refer(), code, text))
}

/// The object, when its status speaks of its present generation.
fn observed<'a>(found: Option<&'a Object>, meant: &ObjectRef) -> Verdict<&'a Object> {
    present(found, meant).and_then(|object| {
        if object.is_deleting() {
            return pending(object, "being-deleted", "is being deleted");
        }
        // A workload that nobody has looked at yet has no observed generation at all.
        match object.number("/status/observedGeneration") {
            Some(seen) if seen >= object.generation() => Verdict::Done(object),
            _ => pending(object, "not-observed", "its controller has not seen the latest change yet"),
        }
    })
}

/// Whether a deployment runs as it is written now: the present generation seen, every replica updated and available,
/// no old one left.
pub fn deployment_available(found: Option<&Object>, meant: &ObjectRef) -> Verdict<Object> {
    observed(found, meant).and_then(|deployment| {
        let count = |field: &str| deployment.number(&format!("/status/{field}")).unwrap_or_default();
        let wanted = deployment.number("/spec/replicas").unwrap_or(1);
        let (all, updated, available) = (count("replicas"), count("updatedReplicas"), count("availableReplicas"));
        if updated == wanted && all == wanted && available == wanted {
            return Verdict::Done(deployment.clone());
        }
        if let Some(progress) = deployment.condition("Progressing")
            && progress.is_false()
            && progress.reason == "ProgressDeadlineExceeded"
        {
            let cause = WorkloadCause::NoProgress { message: progress.message.to_owned() };
            return Verdict::Failed(Why::new(deployment.refer(), &cause));
        }
        let text = if updated < wanted {
            format!("{updated} of {wanted} replicas are made from the latest template")
        } else if all > updated {
            format!("{} replicas of an older template are still there", all - updated)
        } else {
            format!("{available} of {wanted} replicas are available")
        };
        pending(deployment, "replicas", text)
    })
}

/// Whether a daemon set runs as it is written now on every node it should, and on at least `at_least` nodes: a daemon
/// set that should run nowhere is not ready, it is idle.
pub fn daemon_set_ready(found: Option<&Object>, meant: &ObjectRef, at_least: i64) -> Verdict<Object> {
    observed(found, meant).and_then(|set| {
        let count = |field: &str| set.number(&format!("/status/{field}")).unwrap_or_default();
        let desired = count("desiredNumberScheduled");
        if desired < at_least {
            let text = format!("should run on {desired} nodes, and at least {at_least} are wanted");
            return Verdict::Pending(Why::waiting(set.refer(), "no-node-to-run-on", text).or_else(
                FailureVerdict::Configuration,
                "compare its node selector and tolerations with the labels and taints of the nodes",
            ));
        }
        // Under `OnDelete` old pods stay until somebody deletes them, on purpose.
        let on_delete = set.text("/spec/updateStrategy/type") == Some("OnDelete");
        let updated = if on_delete { desired } else { count("updatedNumberScheduled") };
        if updated < desired {
            return pending(set, "pods", format!("{updated} of {desired} pods are made from the latest template"));
        }
        let ready = count("numberReady").min(desired - count("numberUnavailable"));
        if ready < desired {
            return pending(set, "pods", format!("{ready} of {desired} pods are ready"));
        }
        Verdict::Done(set.clone())
    })
}

/// Whether a job is complete; failed at once when it has failed, or when it went away while it was waited for.
pub fn job_complete(found: Option<&Object>, meant: &ObjectRef) -> Verdict<Object> {
    present(found, meant).and_then(|job| {
        let is = |kind: &str| job.condition(kind).filter(Condition::is_true);
        if is("Complete").is_some() {
            return Verdict::Done(job.clone());
        }
        if let Some(failed) = is("Failed").or_else(|| is("FailureTarget")) {
            let cause =
                WorkloadCause::JobFailed { reason: failed.reason.to_owned(), message: failed.message.to_owned() };
            return Verdict::Failed(Why::new(job.refer(), &cause));
        }
        let count = |field: &str| job.number(&format!("/status/{field}")).unwrap_or_default();
        let (active, done) = (count("active"), count("succeeded"));
        let wanted = job.number("/spec/completions").unwrap_or(1);
        let text = match (is("SuccessCriteriaMet").is_some(), count("failed")) {
            (true, _) => "has done its work and is being wound up".to_owned(),
            (_, 0) => format!("{done} of {wanted} done, {active} active"),
            (_, failed) => format!("{done} of {wanted} done, {active} active, {failed} attempts failed"),
        };
        pending(job, "running", text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn object(kind: &str, spec: Value, status: Value) -> Object {
        Object::new(json!({"apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": "x", "namespace": "ns", "uid": "1", "generation": 3}, "spec": spec, "status": status}))
    }

    fn why<T: std::fmt::Debug>(verdict: Verdict<T>) -> String {
        match verdict {
            Verdict::Pending(why) => format!("pending {}", why.cause),
            Verdict::Failed(why) => format!("failed {}", why.cause),
            Verdict::Done(_) => "done".to_owned(),
        }
    }

    fn deployment(status: Value) -> String {
        let it = object("Deployment", json!({"replicas": 1}), status);
        why(deployment_available(Some(&it), &it.refer()))
    }

    #[test]
    fn an_old_healthy_status_is_not_taken_for_the_new_state() {
        let mut status = json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
            "conditions": [{"type": "Available", "status": "True"},
                           {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]});
        assert_eq!(deployment(status.clone()), "pending its controller has not seen the latest change yet");
        status["observedGeneration"] = json!(3);
        assert_eq!(deployment(status.clone()), "done");
        status["replicas"] = json!(2);
        assert_eq!(deployment(status.clone()), "pending 1 replicas of an older template are still there");
        status["updatedReplicas"] = json!(0);
        assert_eq!(deployment(status), "pending 0 of 1 replicas are made from the latest template");
        assert_eq!(deployment(json!({})), "pending its controller has not seen the latest change yet");
    }

    #[test]
    fn a_deployment_that_has_given_up_fails() {
        let status = json!({"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1, "conditions": [
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out progressing"}]});
        assert_eq!(deployment(status), "failed makes no progress: timed out progressing");
    }

    fn daemon_set(spec: Value, status: Value, at_least: i64) -> String {
        let it = object("DaemonSet", spec, status);
        why(daemon_set_ready(Some(&it), &it.refer(), at_least))
    }

    #[test]
    fn a_daemon_set_with_nothing_to_do_is_not_ready() {
        let idle = json!({"observedGeneration": 3, "desiredNumberScheduled": 0, "numberReady": 0});
        assert_eq!(daemon_set(json!({}), idle.clone(), 1), "pending should run on 0 nodes, and at least 1 are wanted");
        assert_eq!(daemon_set(json!({}), idle, 0), "done");
    }

    #[test]
    fn a_daemon_set_is_ready_when_all_its_pods_are_new_and_ready() {
        let mut status = json!({"observedGeneration": 3, "desiredNumberScheduled": 2, "updatedNumberScheduled": 1,
            "numberReady": 2});
        assert_eq!(daemon_set(json!({}), status.clone(), 1), "pending 1 of 2 pods are made from the latest template");
        assert_eq!(daemon_set(json!({"updateStrategy": {"type": "OnDelete"}}), status.clone(), 1), "done");
        status["updatedNumberScheduled"] = json!(2);
        assert_eq!(daemon_set(json!({}), status.clone(), 1), "done");
        status["numberUnavailable"] = json!(1);
        assert_eq!(daemon_set(json!({}), status, 1), "pending 1 of 2 pods are ready");
    }

    fn job(status: Value) -> String {
        let it = object("Job", json!({"completions": 1}), status);
        why(job_complete(Some(&it), &it.refer()))
    }

    #[test]
    fn a_job_ends_the_wait_either_way() {
        let condition =
            |kind: &str, reason: &str| json!({"conditions": [{"type": kind, "status": "True", "reason": reason}]});
        assert_eq!(job(condition("Complete", "")), "done");
        assert_eq!(job(condition("Failed", "BackoffLimitExceeded")), "failed has failed: BackoffLimitExceeded");
        assert_eq!(job(condition("SuccessCriteriaMet", "")), "pending has done its work and is being wound up");
        assert_eq!(job(json!({"active": 1, "failed": 1})), "pending 0 of 1 done, 1 active, 1 attempts failed");
        let meant = ObjectRef::new("batch/v1", "Job", Some("ns"), "x").with_uid("1");
        assert_eq!(why(job_complete(None, &meant)), "failed disappeared while it was waited for");
    }
}
