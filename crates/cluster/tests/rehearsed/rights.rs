//! What the steps ask of the API is what they say they do: a right that is not named cannot be missed beforehand.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use http::Request;
use kube::client::Body;
use toolbox_cluster::olm::steps::{InstallSpec, UninstallSpec, install, uninstall};
use toolbox_cluster::olm::{PackageRef, Wish};
use toolbox_cluster::{Cluster, ClusterInfo, kinds};
use toolbox_engine::plan::{After, Effect, Name, RunOptions, run};
use toolbox_engine::{Clock, Exit, Plan};
use toolbox_rehearsal::{Scenario, World};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    verb: &'static str,
    group: String,
    plural: String,
    namespace: Option<String>,
    name: Option<String>,
}

impl Asked {
    /// What a request asks for; nothing for discovery and the like.
    fn of(request: &Request<Body>) -> Option<Self> {
        let parts: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
        let (group, mut rest) = match parts[..] {
            ["api", _, ref rest @ ..] => ("", rest),
            ["apis", group, _, ref rest @ ..] => (group, rest),
            _ => return None,
        };
        let mut namespace = None;
        if let ["namespaces", within, inner @ ..] = rest
            && !inner.is_empty()
        {
            (namespace, rest) = (Some((*within).to_owned()), inner);
        }
        let query = request.uri().query().unwrap_or_default();
        let by_field = query.split('&').find_map(|pair| pair.strip_prefix("fieldSelector=metadata.name%3D"));
        let name = rest.get(1).copied().or(by_field).map(str::to_owned);
        let verb = match request.method().as_str() {
            "GET" if query.contains("watch=true") => "watch",
            "GET" if rest.len() > 1 => "get",
            "GET" => "list",
            "POST" => "create",
            "DELETE" => "delete",
            _ => "patch",
        };
        Some(Self { verb, group: group.to_owned(), plural: (*rest.first()?).to_owned(), namespace, name })
    }

    fn is_named_by(&self, effect: &Effect) -> bool {
        let name = match &effect.name {
            Name::Is(name) => self.name.as_ref() == Some(name),
            Name::Any | Name::From(_) => true,
        };
        effect.act.api_verbs().contains(&self.verb)
            && (&*effect.kind.group, &*effect.kind.plural) == (&*self.group, &*self.plural)
            && (effect.namespace.is_none() || effect.namespace == self.namespace)
            && name
    }
}

type Seen = Arc<Mutex<BTreeSet<Asked>>>;

/// A client that writes down what it is asked.
fn recorded(client: kube::Client) -> (kube::Client, Seen) {
    let seen = Seen::default();
    let keep = seen.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        keep.lock().unwrap().extend(Asked::of(&request));
        let client = client.clone();
        async move { client.send(request).await.map_err(std::io::Error::other) }
    });
    (kube::Client::new(service, "default"), seen)
}

#[tokio::test(start_paused = true)]
async fn every_request_of_an_installation_and_a_removal_is_named_beforehand() {
    for namespace in [None, Some("nvidia-gpu-operator".to_owned())] {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let world = World::start(Scenario::embedded("default").unwrap(), 3, clock.clone()).await.unwrap();
        let (client, seen) = recorded(world.client());
        let cluster = Cluster::from_client(client, ClusterInfo::default(), clock.clone());
        let package = || PackageRef::new("gpu-operator-certified", "certified-operators");
        let installing = |version: &str| {
            let wish = Wish { channel: Some("stable".to_owned()), version: Some(version.to_owned()) };
            let spec = InstallSpec {
                wish,
                namespace: namespace.clone(),
                ..InstallSpec::new("gpu", "GPU Operator", package())
            };
            let mut plan = Plan::new("install");
            install(&mut plan, &cluster, spec, After::nothing());
            plan
        };
        let mut removing = Plan::new("remove");
        let spec = UninstallSpec {
            id: "gpu",
            title: "GPU Operator",
            package: package(),
            namespace: namespace.clone(),
            usual_namespace: "nvidia-gpu-operator",
            instances: vec![kinds::CLUSTER_POLICY],
            strip_finalizers: false,
            instances_deadline: std::time::Duration::from_secs(300),
        };
        uninstall(&mut removing, &cluster, spec, After::nothing());
        for plan in [installing("1.9.1"), installing("1.10.1"), removing] {
            let (name, effects) = (plan.name().to_owned(), plan.effects());
            seen.lock().unwrap().clear();
            let outcome = run(plan, RunOptions::new(clock.clone())).await;
            assert_eq!(outcome.exit, Exit::Done, "{name}: {:?}", outcome.why);
            let seen = seen.lock().unwrap();
            assert!(seen.len() > 5, "{name}: {seen:?}");
            let unnamed: Vec<&Asked> =
                seen.iter().filter(|asked| !effects.iter().any(|effect| asked.is_named_by(effect))).collect();
            assert!(unnamed.is_empty(), "{name} in {namespace:?} does not say that it needs {unnamed:#?}");
        }
    }
}
