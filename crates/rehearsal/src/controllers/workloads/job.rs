//! Jobs: pods until enough have succeeded or too many have failed.

use std::time::Duration;

use kube::core::DynamicObject;
use serde_json::json;

use super::deployment::nonzero;
use super::{is_ready, pod_from};
use crate::controllers::kit::{Cache, Context, Controller, JOB, Kind, POD, Read, Timers, is_true, with_condition};

/// The Job controller.
pub(crate) struct Jobs;

impl Controller for Jobs {
    const KINDS: &'static [Kind] = &[JOB, POD];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        for job in cache.all(JOB) {
            if !job.is_deleted() {
                one(context, cache, timers, &job).await?;
            }
        }
        Ok(())
    }
}

async fn one(
    context: &Context,
    cache: &mut Cache,
    timers: &mut Timers,
    job: &DynamicObject,
) -> Result<(), kube::Error> {
    if is_true(job, "Complete") || is_true(job, "Failed") {
        let after = job.at("/spec/ttlSecondsAfterFinished").as_u64().map(Duration::from_secs);
        if after.is_some_and(|after| timers.passed(format!("{}/ttl", job.uid()), after)) {
            cache.delete(JOB, job, false).await?;
        }
        return Ok(());
    }
    let mut pods = cache.within(POD, job.namespace());
    pods.retain(|pod| pod.owned_by(job.uid()));
    let count =
        |phase: &str| i64::try_from(pods.iter().filter(|pod| pod.text("/status/phase") == phase).count()).unwrap_or(0);
    let (succeeded, failed) = (count("Succeeded"), count("Failed"));
    let active = i64::try_from(pods.len()).unwrap_or(0) - succeeded - failed;
    let completions = job.at("/spec/completions").as_i64().unwrap_or(1);
    let limit = job.at("/spec/backoffLimit").as_i64().unwrap_or(6);
    let now = context.stamp();
    let deadline = job.at("/spec/activeDeadlineSeconds").as_u64().map(Duration::from_secs);
    let expired = deadline.is_some_and(|deadline| timers.passed(format!("{}/deadline", job.uid()), deadline));

    let ended = if succeeded >= completions {
        Some(("Complete", "", String::new()))
    } else if failed > limit {
        Some(("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit".to_owned()))
    } else if expired {
        Some(("Failed", "DeadlineExceeded", "Job was active longer than specified deadline".to_owned()))
    } else {
        None
    };
    if ended.is_none() {
        let parallel = job.at("/spec/parallelism").as_i64().unwrap_or(1);
        // Each failure doubles the pause before the next pod, from ten seconds on.
        let pause = Duration::from_secs(if failed == 0 { 0 } else { 10 << (failed - 1).min(5) });
        let due = failed == 0 || timers.passed(format!("{}/retry/{failed}", job.uid()), pause);
        for _ in active..parallel.min(completions - succeeded) {
            if due {
                cache.create(POD, &pod_from(JOB, job, &template(job))).await?;
            }
        }
    } else {
        for pod in pods.iter().filter(|pod| !super::is_finished(pod) && !pod.is_deleted()) {
            cache.delete(POD, pod, false).await?;
        }
    }
    let ready = pods.iter().filter(|pod| is_ready(pod) && !super::is_finished(pod)).count();
    let mut status = json!({
        "startTime": job.at("/status/startTime").as_str().unwrap_or(&now),
        "active": nonzero(if ended.is_some() { 0 } else { active.max(0) }),
        "ready": ready,
        "succeeded": nonzero(succeeded),
        "failed": nonzero(failed),
    });
    if let Some((kind, reason, message)) = ended {
        status["conditions"] =
            with_condition(job.list("/status/conditions"), kind, true, reason, &message, &now).into();
        if kind == "Complete" {
            status["completionTime"] = now.into();
        }
    }
    cache.status(JOB, job, status).await
}

/// The job's template with the labels that the job's selector asks for.
fn template(job: &DynamicObject) -> serde_json::Value {
    let mut template = job.at("/spec/template").clone();
    template["metadata"]["labels"]["job-name"] = job.name().into();
    template["metadata"]["labels"]["controller-uid"] = job.uid().into();
    template
}
