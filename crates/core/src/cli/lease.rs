//! One run at a time changes a cluster: a Lease names the run that does.
//!
//! The lease expires by itself, so that a run that was killed does not block the next one for long.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use toolbox_cluster::{Cluster, ClusterError, Object, kinds};
use toolbox_engine::plan::show_duration;
use toolbox_engine::{Cause, Exit, FailureVerdict, ObjectRef, Why};

const NAMESPACE: &str = "default";
const NAME: &str = "tbx";
/// How long a holder is believed without a sign of life.
const LASTS_S: i64 = 60;
const RENEW: Duration = Duration::from_secs(20);

/// How long giving it up may take.
const GIVE_UP: Duration = Duration::from_secs(5);

/// The run that wants the lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The verb.
    pub(crate) verb: String,
    /// The machine it runs on.
    pub(crate) host: String,
    /// Its process.
    pub(crate) pid: u32,
    /// Its run id.
    pub(crate) run: String,
}

impl Holder {
    fn identity(&self) -> String {
        format!("{}/{}/{}", self.host, self.pid, self.run)
    }
}

/// What came of asking for the lease.
pub(crate) enum Asked {
    /// It is ours.
    Ours(Lease),
    /// There is none to be had here: not served, or not allowed. Says why.
    Without(String),
}

/// A lease that is ours until it is given up.
#[derive(Debug)]
pub(crate) struct Lease {
    object: Object,
    holder: Holder,
}

struct Taken {
    by: String,
    left: Duration,
}

impl Cause for Taken {
    fn code(&self) -> &'static str {
        "another-run"
    }
    fn text(&self) -> String {
        format!("another run works on this cluster: {}", self.by)
    }
    fn next(&self) -> String {
        format!(
            "let it end (had it been killed, its lease would end in {}), or run with --force-lock if it is gone; nothing was changed",
            show_duration(self.left)
        )
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Infrastructure
    }
    fn exit(&self) -> Exit {
        Exit::Access
    }
}

fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

fn manifest(holder: &Holder, before: Option<&Object>, now: Timestamp) -> Value {
    let ours = before.is_some_and(|before| before.text("/spec/holderIdentity") == Some(&*holder.identity()));
    let transitions = before.and_then(|before| before.number("/spec/leaseTransitions")).unwrap_or(0);
    let acquired = before
        .filter(|_| ours)
        .and_then(|before| before.text("/spec/acquireTime"))
        .map_or_else(|| stamp(now), str::to_owned);
    let mut lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {toolbox_cluster::MANAGED_BY: toolbox_cluster::MANAGER},
            "annotations": {
                "tbx/verb": holder.verb, "tbx/host": holder.host, "tbx/pid": holder.pid.to_string(), "tbx/run": holder.run,
            },
        },
        "spec": {
            "holderIdentity": holder.identity(),
            "leaseDurationSeconds": LASTS_S,
            "acquireTime": acquired,
            "renewTime": stamp(now),
            "leaseTransitions": if ours || before.is_none() { transitions } else { transitions + 1 },
        },
    });
    if let Some(before) = before {
        lease["metadata"]["resourceVersion"] = before.resource_version().into();
    }
    lease
}

/// How long the present holder is still believed.
fn left(lease: &Object, now: Timestamp) -> Option<Duration> {
    lease.text("/spec/holderIdentity").filter(|holder| !holder.is_empty())?;
    let renewed: Timestamp = lease.text("/spec/renewTime")?.parse().ok()?;
    let lasts = lease.number("/spec/leaseDurationSeconds").unwrap_or(LASTS_S);
    let end = renewed.checked_add(SignedDuration::from_secs(lasts)).ok()?;
    let left = end.duration_since(now);
    left.is_positive().then(|| left.unsigned_abs())
}

fn taken(lease: &Object, left: Duration, now: Timestamp) -> Why {
    let about = |key: &str| lease.annotation(key).unwrap_or("unknown").to_owned();
    let since = lease
        .text("/spec/acquireTime")
        .and_then(|since| since.parse::<Timestamp>().ok())
        .map(|since| {
            let ago = now.duration_since(since).unsigned_abs();
            format!(", since {} ({} ago)", since.strftime("%H:%M:%SZ"), show_duration(ago))
        })
        .unwrap_or_default();
    let by = format!(
        "{} on host {}, pid {}, run {}{since}",
        about("tbx/verb"),
        about("tbx/host"),
        about("tbx/pid"),
        about("tbx/run")
    );
    Why::new(object(), &Taken { by, left })
}

fn object() -> ObjectRef {
    kinds::LEASE.object(Some(NAMESPACE), NAME)
}

/// Asks for the lease. `force` takes it from whoever has it.
pub(crate) async fn ask(cluster: &Cluster, holder: Holder, force: bool) -> Result<Asked, Why> {
    // Stamps are the cluster's time: the clocks of two machines may disagree on whether a lease has expired.
    // A lost race is looked at once more: by then somebody has it.
    for _ in 0..3 {
        let now = cluster.now();
        let before = match cluster.get(&kinds::LEASE, Some(NAMESPACE), NAME).await {
            Ok(before) => before,
            Err(error) => return without(error),
        };
        if let Some(before) = &before
            && let Some(left) = left(before, now)
            && !force
            && !is_ours(before, &holder)
        {
            return Err(taken(before, left, now));
        }
        match cluster.put_lease(&manifest(&holder, before.as_ref(), now)).await {
            Ok(object) => return Ok(Asked::Ours(Lease { object, holder })),
            Err(ClusterError::AlreadyExists { .. } | ClusterError::Conflict { .. }) => {}
            Err(error) => return without(error),
        }
    }
    Ok(Asked::Without("it changes hands all the time".to_owned()))
}

/// Whether the lease is this run's own: its create had a lost answer, or the run is resumed on the same machine after
/// the process that held it was killed.
fn is_ours(lease: &Object, holder: &Holder) -> bool {
    if lease.text("/spec/holderIdentity") == Some(&*holder.identity()) {
        return true;
    }
    let pid = lease.annotation("tbx/pid").unwrap_or_default();
    let same_run =
        lease.annotation("tbx/run") == Some(&*holder.run) && lease.annotation("tbx/host") == Some(&*holder.host);
    same_run && pid.parse::<u32>().is_ok_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists())
}

fn without(error: ClusterError) -> Result<Asked, Why> {
    if error.is_absent() || matches!(error, ClusterError::Forbidden { .. }) {
        Ok(Asked::Without(error.to_string()))
    } else {
        Err(error.into())
    }
}

impl Lease {
    /// Renews it for ever, to be raced against the run; returns what is to be said when somebody took it over.
    pub(crate) async fn keep(&mut self, cluster: &Cluster) -> String {
        loop {
            cluster.clock().sleep(RENEW).await;
            let now = cluster.now();
            let wanted = manifest(&self.holder, Some(&self.object), now);
            match cluster.put_lease(&wanted).await {
                Ok(object) => self.object = object,
                Err(ClusterError::Conflict { .. } | ClusterError::NotFound { .. }) => {
                    if let Some(text) = self.lost(cluster).await {
                        return text;
                    }
                }
                // The API is away: the run has the same trouble, and says so.
                Err(_) => {}
            }
        }
    }

    /// Whether it is somebody else's now, in words; an earlier renewal of ours may just have had a lost answer.
    async fn lost(&mut self, cluster: &Cluster) -> Option<String> {
        let found = cluster.get(&kinds::LEASE, Some(NAMESPACE), NAME).await.ok()?;
        match found {
            Some(found) if found.text("/spec/holderIdentity") == Some(&*self.holder.identity()) => {
                self.object = found;
                None
            }
            Some(found) => {
                Some(format!("{}: taken over by {}", object(), found.annotation("tbx/host").unwrap_or("somebody else")))
            }
            None => Some(format!("{}: deleted by somebody else", object())),
        }
    }

    /// Gives it up.
    pub(crate) async fn give_up(self, cluster: &Cluster) {
        // It expires by itself when this does not work.
        tokio::select! {
            biased;
            _ = cluster.drop_lease(&self.object) => {}
            () = cluster.clock().sleep(GIVE_UP) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(run: &str) -> Holder {
        Holder { verb: "cluster set_scale".into(), host: "ci-7".into(), pid: 42, run: run.into() }
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_lease_is_believed_for_a_minute_and_then_changes_hands() {
        let start = at("2026-01-01T10:00:00Z");
        let mut lease = manifest(&holder("a"), None, start);
        lease["metadata"]["resourceVersion"] = "7".into();
        let lease = Object::new(lease);
        assert_eq!(left(&lease, at("2026-01-01T10:00:59Z")), Some(Duration::from_secs(1)));
        assert_eq!(left(&lease, at("2026-01-01T10:01:00Z")), None);
        let renewed = manifest(&holder("a"), Some(&lease), at("2026-01-01T10:00:20Z"));
        assert_eq!(renewed["spec"]["acquireTime"], "2026-01-01T10:00:00.000000Z");
        assert_eq!(renewed["spec"]["leaseTransitions"], 0);
        let other = manifest(&holder("b"), Some(&lease), at("2026-01-01T10:02:00Z"));
        assert_eq!(other["spec"]["acquireTime"], "2026-01-01T10:02:00.000000Z");
        assert_eq!(other["spec"]["leaseTransitions"], 1);
        assert_eq!(other["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn a_run_is_not_locked_out_by_itself() {
        let start = at("2026-01-01T10:00:00Z");
        let lease = Object::new(manifest(&holder("a"), None, start));
        assert!(is_ours(&lease, &holder("a")), "a create whose answer was lost");
        assert!(!is_ours(&lease, &holder("b")), "another run");
        let alive = Holder { pid: std::process::id(), ..holder("a") };
        let lease = Object::new(manifest(&alive, None, start));
        assert!(!is_ours(&lease, &holder("a")), "the same run, still alive");
        let killed = Holder { pid: u32::MAX, ..holder("a") };
        let lease = Object::new(manifest(&killed, None, start));
        assert!(is_ours(&lease, &holder("a")), "the same run, killed");
    }

    #[test]
    fn the_refusal_names_the_other_run() {
        let start = at("2026-01-01T10:00:00Z");
        let lease = Object::new(manifest(&holder("a"), None, start));
        let why = taken(&lease, Duration::from_secs(30), at("2026-01-01T10:00:30Z"));
        assert_eq!(
            why.to_string(),
            "Lease/default/tbx: another run works on this cluster: cluster set_scale on host ci-7, pid 42, run a, since 10:00:00Z (30s ago)"
        );
        assert_eq!(why.exit, Exit::Access);
    }
}
