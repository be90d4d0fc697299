//! What an object owns and what owns it, as far as it does not come up.

use std::future::Future;
use std::pin::Pin;

use toolbox_cluster::conditions::{self, PodCause, PodTroubles};
use toolbox_cluster::{Cluster, LogOptions, Object, Query, kinds};
use toolbox_engine::plan::Kind;
use toolbox_engine::{ObjectRef, Verdict, Why};

use super::judge::judge;

/// How deep is looked.
const DEPTH: usize = 6;
/// How many of one level are followed.
const EACH: usize = 5;
/// Warnings and log lines that are shown of one object.
const WARNINGS: usize = 3;
const LOG_LINES: u64 = 12;

/// One object that was looked at.
pub(super) struct Found {
    pub(super) object: ObjectRef,
    pub(super) depth: usize,
    pub(super) verdict: Verdict<String>,
}

impl Found {
    pub(super) fn why(&self) -> Option<&Why> {
        match &self.verdict {
            Verdict::Done(_) => None,
            Verdict::Pending(why) | Verdict::Failed(why) => Some(why),
        }
    }

    pub(super) fn text(&self) -> &str {
        match &self.verdict {
            Verdict::Done(text) => text,
            Verdict::Pending(why) | Verdict::Failed(why) => &why.cause,
        }
    }
}

/// Looks around, and notes what it was not allowed to see.
pub(super) struct Looking<'a> {
    cluster: &'a Cluster,
    pub(super) notes: Vec<String>,
}

impl<'a> Looking<'a> {
    pub(super) fn new(cluster: &'a Cluster) -> Self {
        Self { cluster, notes: Vec::new() }
    }

    async fn list(&mut self, query: Query) -> Vec<Object> {
        match self.cluster.list(&query).await {
            Ok(found) => found,
            Err(error) if error.is_absent() => Vec::new(),
            Err(error) => {
                let note = format!("could not look at {}: {error}", query.kind.full_name());
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
                Vec::new()
            }
        }
    }

    /// Names like the one that does not exist, else any.
    pub(super) async fn names(
        mut self,
        kind: &Kind,
        namespace: Option<&str>,
        name: &str,
        at_most: usize,
    ) -> Vec<String> {
        let query = match namespace {
            Some(namespace) => Query::within(kind, namespace),
            None => Query::all(kind),
        };
        let names: Vec<String> = self.list(query).await.iter().map(|object| object.name().to_owned()).collect();
        let start: String = name.chars().take(4).collect();
        let (near, far): (Vec<String>, Vec<String>) = names.into_iter().partition(|known| known.contains(&start));
        near.into_iter().chain(far).take(at_most).collect()
    }

    /// The object, and below it what does not come up.
    pub(super) fn down<'b>(&'b mut self, object: Object, depth: usize) -> Pin<Box<dyn Future<Output = Vec<Found>> + 'b>>
    where
        'a: 'b,
    {
        Box::pin(async move {
            let verdict = self.with_evidence(&object, judge(&object)).await;
            let held = !matches!(verdict, Verdict::Done(_));
            let mut found = vec![Found { object: object.refer(), depth, verdict }];
            if held && depth < DEPTH {
                let below = self.below(&object).await;
                let trouble = below.into_iter().filter(|child| !matches!(judge(child), Verdict::Done(_)));
                for child in trouble.take(EACH) {
                    found.extend(self.down(child, depth + 1).await);
                }
            }
            found
        })
    }

    /// Owners, from the nearest to the last.
    pub(super) async fn up(&mut self, object: &Object) -> Vec<Found> {
        let mut owners = Vec::new();
        let mut at = object.clone();
        while owners.len() < DEPTH {
            let owner = at.list("/metadata/ownerReferences").first().cloned();
            let Some(owner) = owner else { break };
            let text = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
            let Ok(kind) = self.cluster.kind(&text("apiVersion"), &text("kind")).await else { break };
            let found = self.cluster.get(&kind, at.namespace(), &text("name")).await;
            let Ok(Some(found)) = found else { break };
            owners.push(Found { object: found.refer(), depth: 0, verdict: judge(&found) });
            at = found;
        }
        owners
    }

    /// What an object has made, or stands on.
    async fn below(&mut self, object: &Object) -> Vec<Object> {
        let namespace = object.namespace().unwrap_or_default().to_owned();
        let kinds: &[Kind] = match object.kind() {
            "Deployment" => &[kinds::REPLICA_SET],
            "ReplicaSet" | "DaemonSet" | "StatefulSet" | "Job" | "CatalogSource" => &[kinds::POD],
            "ClusterServiceVersion" => &[kinds::DEPLOYMENT],
            "MachineSet" => &[kinds::MACHINE],
            "ClusterPolicy" => &[kinds::DAEMON_SET],
            "NodeFeatureDiscovery" => &[kinds::DAEMON_SET, kinds::DEPLOYMENT],
            "Subscription" => return self.of_subscription(object, &namespace).await,
            "Machine" => return self.named(&kinds::NODE, None, object.text("/status/nodeRef/name")).await,
            "Pod" => return self.named(&kinds::NODE, None, object.text("/spec/nodeName")).await,
            _ => return Vec::new(),
        };
        let mut below = Vec::new();
        for kind in kinds {
            let query = if namespace.is_empty() { Query::all(kind) } else { Query::within(kind, &namespace) };
            below.extend(self.list(query).await);
        }
        below.retain(|child| {
            child.owner_uids().contains(&object.uid()) && !conditions::is_superseded(child) && !is_idle(child)
        });
        below
    }

    async fn of_subscription(&mut self, subscription: &Object, namespace: &str) -> Vec<Object> {
        let namespace = Some(namespace);
        let mut below =
            self.named(&kinds::INSTALL_PLAN, namespace, subscription.text("/status/installPlanRef/name")).await;
        below.extend(self.named(&kinds::CSV, namespace, subscription.text("/status/currentCSV")).await);
        let source = subscription.text("/spec/sourceNamespace");
        below.extend(self.named(&kinds::CATALOG_SOURCE, source, subscription.text("/spec/source")).await);
        below
    }

    async fn named(&mut self, kind: &Kind, namespace: Option<&str>, name: Option<&str>) -> Vec<Object> {
        let Some(name) = name.filter(|name| !name.is_empty()) else { return Vec::new() };
        match self.cluster.get(kind, namespace, name).await {
            Ok(found) => found.into_iter().collect(),
            Err(error) => {
                if !error.is_absent() {
                    self.notes.push(format!("could not look at {}: {error}", kind.object(namespace, name)));
                }
                Vec::new()
            }
        }
    }

    /// Adds warnings, and the last words of a container that crashes.
    async fn with_evidence(&mut self, object: &Object, verdict: Verdict<String>) -> Verdict<String> {
        let why = match &verdict {
            Verdict::Done(_) => return verdict,
            Verdict::Pending(why) | Verdict::Failed(why) => why.clone(),
        };
        // Events about cluster-scoped objects are in the default namespace.
        let namespace = object.namespace().unwrap_or("default");
        let query = Query::within(&kinds::EVENT, namespace).fields(format!("involvedObject.name={}", object.name()));
        let events = self.list(query).await;
        if object.kind() != "Pod" {
            let warnings = conditions::warnings_about(&events, &object.refer(), WARNINGS);
            let more = |mut why: Why| {
                why.evidence.extend(warnings);
                why
            };
            return match verdict {
                Verdict::Failed(why) => Verdict::Failed(more(why)),
                _ => Verdict::Pending(more(why)),
            };
        }
        // The events may have said it in more exact words than the status does now.
        let now = self.cluster.clock().now();
        let explained = PodTroubles::default().explain(why, std::slice::from_ref(object), &events, now);
        let Some((container, previous)) = conditions::pod_trouble(object).and_then(talkative) else { return explained };
        let options = LogOptions { tail_lines: Some(LOG_LINES), limit_bytes: Some(16 * 1024), previous };
        let log = self.cluster.log(namespace, object.name(), Some(&container), &options).await;
        let Some(log) = log.ok().filter(|log| !log.trim().is_empty()) else { return explained };
        let label = format!("log of container {container}");
        match explained {
            Verdict::Done(text) => Verdict::Done(text),
            Verdict::Pending(why) => Verdict::Pending(why.with(label, log.trim_end())),
            Verdict::Failed(why) => Verdict::Failed(why.with(label, log.trim_end())),
        }
    }
}

/// The container whose log says more, and whether it is its last life's.
fn talkative(cause: PodCause) -> Option<(String, bool)> {
    match cause {
        PodCause::CrashLoop { container, .. } => Some((container, true)),
        PodCause::Failed { container, .. } => Some((container?, false)),
        _ => None,
    }
}

/// A replica set of an older revision.
fn is_idle(object: &Object) -> bool {
    object.kind() == "ReplicaSet" && object.number("/spec/replicas") == Some(0)
}
