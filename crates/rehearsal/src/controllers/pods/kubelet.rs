//! The kubelets of all nodes: what they do with the pods bound to them.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::core::DynamicObject;
use serde_json::Value;

use super::behaviour::{Exit, Script, script};
use super::container::{Container, End, State, back_off};
use super::images::{Images, trouble};
use super::scheduler::node_is_ready;
use super::status::pod_status;
use crate::api::PodLogs;
use crate::controllers::kit::{Cache, Context, Controller, Kind, NODE, POD, Read, Recorder, Timers, identity};

/// All kubelets.
pub(crate) struct Kubelet {
    logs: PodLogs,
    events: Recorder,
    images: Images,
    pods: BTreeMap<String, Pod>,
}

struct Pod {
    containers: Vec<Container>,
    started: String,
    ip: String,
}

/// What one look at a container needs.
struct Look<'a> {
    context: &'a Context,
    pod: &'a DynamicObject,
    script: Script,
    who: String,
    node: &'a str,
}

impl Kubelet {
    pub(crate) fn new(logs: PodLogs) -> Self {
        Self { logs, events: Recorder::new("kubelet", POD), images: Images::default(), pods: BTreeMap::new() }
    }
}

impl Controller for Kubelet {
    const KINDS: &'static [Kind] = &[POD, NODE];

    async fn reconcile(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
    ) -> Result<(), kube::Error> {
        let pods = cache.all(POD);
        self.pods.retain(|uid, _| pods.iter().any(|pod| pod.uid() == uid));
        for pod in pods {
            if pod.is_deleted() {
                self.terminate(context, cache, timers, &pod).await?;
                continue;
            }
            let name = pod.text("/spec/nodeName");
            if name.is_empty() {
                continue;
            }
            match cache.get(NODE, "", name) {
                None => cache.delete(POD, &pod, true).await?,
                Some(node) => self.sync(context, cache, timers, &pod, &node).await?,
            }
        }
        Ok(())
    }
}

impl Kubelet {
    async fn terminate(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
        pod: &DynamicObject,
    ) -> Result<(), kube::Error> {
        let there = cache.get(NODE, "", pod.text("/spec/nodeName")).is_some();
        let finished = matches!(pod.text("/status/phase"), "Succeeded" | "Failed");
        let wait =
            context.draw(context.scenario.timings.pod_termination, "podTermination", &identity::of_pod(cache, pod));
        if there && !finished && !timers.passed(format!("{}/terminate", pod.uid()), wait) {
            return Ok(());
        }
        cache.delete(POD, pod, true).await
    }

    async fn sync(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
        pod: &DynamicObject,
        node: &DynamicObject,
    ) -> Result<(), kube::Error> {
        let uid = pod.uid().to_owned();
        let ready = node_is_ready(node);
        if !self.pods.contains_key(&uid) {
            if !ready || matches!(pod.text("/status/phase"), "Succeeded" | "Failed") {
                return Ok(());
            }
            self.pods.insert(uid.clone(), admit(context, pod));
        }
        let who = identity::of_pod(cache, pod);
        let sandbox = context.draw(context.scenario.timings.pod_sandbox, "podSandbox", &who);
        if let Some(mut state) = self.pods.remove(&uid) {
            if ready && timers.passed(format!("{uid}/sandbox"), sandbox) {
                if state.ip.is_empty() {
                    let number = context.dice.number("ip", &uid);
                    state.ip = format!("10.{}.{}.{}", 128 + number % 4, (number >> 8) % 250, 2 + (number >> 16) % 250);
                }
                self.run_containers(context, cache, timers, pod, &who, &mut state).await;
            }
            let status = pod_status(pod, &state.containers, &state.started, &state.ip, ready, &context.stamp());
            self.pods.insert(uid, state);
            cache.status(POD, pod, status).await?;
        }
        Ok(())
    }

    async fn run_containers(
        &mut self,
        context: &Context,
        cache: &mut Cache,
        timers: &mut Timers,
        pod: &DynamicObject,
        who: &str,
        state: &mut Pod,
    ) {
        let specs: Vec<Value> =
            pod.list("/spec/initContainers").iter().chain(pod.list("/spec/containers")).cloned().collect();
        for (n, spec) in specs.iter().enumerate() {
            let Some(container) = state.containers.get_mut(n) else { return };
            if container.init && container.succeeded() {
                continue;
            }
            let look = Look {
                context,
                pod,
                script: script(context, cache, pod, spec),
                who: format!("{who}/{}", container.name),
                node: pod.text("/spec/nodeName"),
            };
            // Several steps may be due at the same moment, such as an image that is there already.
            while self.step(cache, timers, &look, container).await {}
            if container.init && !container.succeeded() {
                return;
            }
        }
    }

    /// One step of a container's life; false when it has to wait.
    async fn step(
        &mut self,
        cache: &mut Cache,
        timers: &mut Timers,
        look: &Look<'_>,
        container: &mut Container,
    ) -> bool {
        let run = format!("{}/{}/{}", look.pod.uid(), container.name, container.restarts);
        match container.state.clone() {
            State::Waiting { reason: "PodInitializing" | "ContainerCreating", .. } => {
                self.start(cache, timers, look, container, &run).await
            }
            State::Waiting { reason: "ErrImagePull" | "ImagePullBackOff", .. } => {
                self.pull_again(cache, timers, look, container).await
            }
            State::Waiting { .. } => {
                let timings = &look.context.scenario.timings;
                let wait =
                    back_off(fixed(look, timings.back_off), fixed(look, timings.back_off_limit), container.restarts);
                if !timers.passed(format!("{run}/back-off"), wait) {
                    return false;
                }
                container.restarts += 1;
                container.wait("ContainerCreating", "");
                true
            }
            State::Running { since } => self.watch_run(timers, look, container, &run, &since),
            State::Ended(end) => self.restart(cache, look, container, end).await,
        }
    }

    /// Pull and start, which end in Running or in a failed pull.
    async fn start(
        &mut self,
        cache: &mut Cache,
        timers: &mut Timers,
        look: &Look<'_>,
        container: &mut Container,
        run: &str,
    ) -> bool {
        let timings = &look.context.scenario.timings;
        let there = self.images.has(look.node, &container.image);
        if !there && !container.announced {
            container.announced = true;
            let message = format!("Pulling image \"{}\"", container.image);
            self.events.record(look.context, cache, look.pod, false, "Pulling", &message).await;
        }
        if let Some(message) = trouble(look.context, &container.image) {
            let attempt = format!("{run}/pull/{}", container.failed_pulls);
            if !timers.passed(attempt, look.context.draw(timings.container_start, "failedPull", &look.who)) {
                return false;
            }
            container.failed_pulls += 1;
            container.wait("ErrImagePull", message.clone());
            let text = format!("Failed to pull image \"{}\": {message}", container.image);
            self.events.record(look.context, cache, look.pod, true, "Failed", &text).await;
            self.events.record(look.context, cache, look.pod, true, "Failed", "Error: ErrImagePull").await;
            return true;
        }
        if !self.images.pulled(look.context, timers, look.node, &container.image) {
            return false;
        }
        if !timers
            .passed(format!("{run}/start"), look.context.draw(timings.container_start, "containerStart", &look.who))
        {
            return false;
        }
        if container.restarts > 0 {
            self.logs.restart(look.pod.namespace(), look.pod.name(), &container.name);
        }
        container.state = State::Running { since: look.context.stamp() };
        container.logged = 0;
        let name = &container.name;
        self.events.record(look.context, cache, look.pod, false, "Created", &format!("Created container {name}")).await;
        self.events.record(look.context, cache, look.pod, false, "Started", &format!("Started container {name}")).await;
        true
    }

    async fn pull_again(
        &mut self,
        cache: &mut Cache,
        timers: &mut Timers,
        look: &Look<'_>,
        container: &mut Container,
    ) -> bool {
        let timings = &look.context.scenario.timings;
        let attempt = format!("{}/{}/pull-again/{}", look.pod.uid(), container.name, container.failed_pulls);
        if container.is_waiting_for("ErrImagePull") {
            // The kubelet's next look at the pod finds the pull in back-off.
            if !timers.passed(format!("{attempt}/look"), Duration::from_secs(2)) {
                return false;
            }
            let message = format!("Back-off pulling image \"{}\"", container.image);
            self.events.record(look.context, cache, look.pod, false, "BackOff", &message).await;
            container.wait("ImagePullBackOff", message);
            return true;
        }
        let wait = back_off(fixed(look, timings.back_off), fixed(look, timings.back_off_limit), container.failed_pulls);
        if !timers.passed(attempt, wait) {
            return false;
        }
        container.announced = false;
        // The reason shown stays until the pull has failed again.
        self.retry_pull(cache, look, container).await
    }

    async fn retry_pull(&mut self, cache: &mut Cache, look: &Look<'_>, container: &mut Container) -> bool {
        let Some(message) = trouble(look.context, &container.image) else {
            container.wait("ContainerCreating", "");
            return true;
        };
        container.failed_pulls += 1;
        container.wait("ErrImagePull", message.clone());
        let text = format!("Failed to pull image \"{}\": {message}", container.image);
        self.events.record(look.context, cache, look.pod, true, "Failed", &text).await;
        true
    }

    /// A running container: its log, its readiness, its end.
    fn watch_run(
        &mut self,
        timers: &mut Timers,
        look: &Look<'_>,
        container: &mut Container,
        run: &str,
        since: &str,
    ) -> bool {
        let script = &look.script;
        while let Some((at, line)) = script.log.get(container.logged) {
            if !timers.passed(
                format!("{run}/log/{}", container.logged),
                at.saturating_sub(previous(script, container.logged)),
            ) {
                break;
            }
            self.logs.append(look.pod.namespace(), look.pod.name(), &container.name, line);
            container.logged += 1;
        }
        if !container.init && !container.ready && timers.passed(format!("{run}/ready"), script.ready_after) {
            container.ready = true;
        }
        let code = match script.exit {
            Exit::Never | Exit::Once(false, _) => None,
            Exit::After(wait, code) => timers.passed(format!("{run}/exit"), wait).then_some(code),
            Exit::Once(true, wait) => timers.passed(format!("{run}/once"), wait).then_some(0),
        };
        let Some(code) = code else { return false };
        for line in &script.last_words {
            self.logs.append(look.pod.namespace(), look.pod.name(), &container.name, line);
        }
        container.ready = false;
        container.state = State::Ended(End { code, started: since.to_owned(), finished: look.context.stamp() });
        true
    }

    /// An ended container: left as it is, started again at once the first time, then after a back-off.
    async fn restart(&mut self, cache: &mut Cache, look: &Look<'_>, container: &mut Container, end: End) -> bool {
        let policy = look.pod.text("/spec/restartPolicy");
        let again = match policy {
            "Never" => false,
            "OnFailure" => end.code != 0,
            _ => end.code != 0 || !container.init,
        };
        if !again {
            return false;
        }
        container.last = Some(end);
        if container.restarts == 0 {
            container.restarts = 1;
            container.wait("ContainerCreating", "");
            return true;
        }
        let timings = &look.context.scenario.timings;
        let wait = back_off(fixed(look, timings.back_off), fixed(look, timings.back_off_limit), container.restarts);
        let message = format!(
            "back-off {}s restarting failed container={} pod={}_{}({})",
            wait.as_secs(),
            container.name,
            look.pod.name(),
            look.pod.namespace(),
            look.pod.uid(),
        );
        self.events
            .record(look.context, cache, look.pod, true, "BackOff", "Back-off restarting failed container")
            .await;
        container.wait("CrashLoopBackOff", message);
        true
    }
}

fn fixed(look: &Look<'_>, dist: crate::scenario::Dist) -> Duration {
    look.context.draw(dist, "backOff", &look.who)
}

fn previous(script: &Script, line: usize) -> Duration {
    line.checked_sub(1).and_then(|before| script.log.get(before)).map_or(Duration::ZERO, |(at, _)| *at)
}

fn admit(context: &Context, pod: &DynamicObject) -> Pod {
    let init = pod.list("/spec/initContainers");
    let all = init.iter().map(|spec| Container::new(spec, true, false));
    let main = pod.list("/spec/containers").iter().map(|spec| Container::new(spec, false, !init.is_empty()));
    Pod { containers: all.chain(main).collect(), started: context.stamp(), ip: String::new() }
}
