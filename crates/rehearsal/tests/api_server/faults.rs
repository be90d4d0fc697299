//! Each fault of the API, as a client meets it.

use std::time::Duration;

use futures::StreamExt;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use toolbox_rehearsal::{ApiServer, Fault, FaultRule};

use super::common::{map, maps, server, status};

async fn make(api: &Api<ConfigMap>, name: &str) -> Result<ConfigMap, kube::Error> {
    api.create(&PostParams::default(), &map(name)).await
}

/// The words at the bottom of an error.
fn root(error: &kube::Error) -> String {
    let chain = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    chain.last().unwrap().to_string()
}

async fn names(api: &Api<ConfigMap>) -> Vec<String> {
    api.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_done_and_one_that_never_arrived_look_the_same() {
    let server = server();
    let api = maps(&server.client());
    server.faults().add(FaultRule::new(Fault::Unanswered).verb("create").times(1));
    server.faults().add(FaultRule::new(Fault::ConnectionReset).verb("create").times(1));
    let done = root(&make(&api, "done").await.unwrap_err());
    let lost = root(&make(&api, "lost").await.unwrap_err());
    assert_eq!((done.as_str(), lost.as_str()), ("connection reset by peer", "connection reset by peer"));
    assert_eq!(names(&api).await, ["done"]);
}

#[tokio::test(start_paused = true)]
async fn rules_choose_by_turn_and_by_share() {
    let server = server();
    let api = maps(&server.client());
    server.faults().add(FaultRule::new(Fault::Conflict).every(3));
    let mut refused = Vec::new();
    for n in 1..=9 {
        if let Err(error) = make(&api, &format!("a{n}")).await {
            assert_eq!(status(error).0, 409);
            refused.push(n);
        }
    }
    assert_eq!(refused, [3, 6, 9]);
    assert_eq!(names(&api).await.len(), 6, "reads are never in conflict");

    server.faults().clear();
    server.faults().add(FaultRule::new(Fault::Status(503)).verb("get").rate(0.25).times(40));
    let mut failed = 0;
    for _ in 0..100 {
        failed += u32::from(api.get("a1").await.is_err());
    }
    assert!((10..=40).contains(&failed), "{failed} of 100");
    let mut spared = 0;
    server.faults().add(FaultRule::new(Fault::Status(503)).sparing("jane"));
    let jane: Api<ConfigMap> = maps(&server.client_as("jane"));
    for _ in 0..5 {
        spared += u32::from(jane.list(&ListParams::default()).await.is_ok());
    }
    assert_eq!(spared, 5);
    assert!(api.list(&ListParams::default()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn half_an_event_is_no_event_and_comes_whole_when_asked_for_again() {
    let server = server();
    let api = maps(&server.client());
    let mut stream = Box::pin(watcher(api.clone(), watcher::Config::default()));
    assert!(matches!(stream.next().await, Some(Ok(Event::Init))));
    assert!(matches!(stream.next().await, Some(Ok(Event::InitDone))));
    let watch = api.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = Box::pin(watch);
    server.faults().halve_events("configmaps");
    make(&api, "a").await.unwrap();
    let broken = watch.next().await.unwrap();
    assert!(!matches!(broken, Ok(WatchEvent::Added(_))), "{broken:?}");
    assert!(server.faults().open_watches().len() <= 1, "{:?}", server.faults().open_watches());
    drop(watch);

    // A watch that is chosen when it is opened.
    server.faults().add(FaultRule::new(Fault::HalfEvent).times(1));
    let found = async {
        loop {
            if let Some(Ok(Event::Apply(object) | Event::InitApply(object))) = stream.next().await {
                return object.name_any();
            }
        }
    };
    assert_eq!(found.await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_restart_takes_what_hangs_along() {
    let server = server();
    let api = maps(&server.client());
    server.faults().add(FaultRule::new(Fault::Stalled).verb("get").times(1));
    let hanging = api.get("a");
    let restart = async {
        server.clock().sleep(Duration::from_secs(5)).await;
        server.faults().restart(Duration::from_secs(10));
    };
    let (answer, ()) = tokio::join!(hanging, restart);
    assert_eq!(root(&answer.unwrap_err()), "connection reset by peer");
    assert_eq!(server.clock().elapsed(), Duration::from_secs(5));
    assert_eq!(root(&api.get("a").await.unwrap_err()), "connection refused");
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_of_a_write_leaves_it_done_or_not() {
    let done = |seed: u64| async move {
        let clock = toolbox_engine::Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let version = toolbox_rehearsal::KubeVersion::new(1, 34, 4);
        let server = ApiServer::new(toolbox_rehearsal::ApiOptions { clock, seed, version, openshift: false });
        let api = maps(&server.client());
        let down = Duration::from_secs(20);
        server.faults().add(FaultRule::new(Fault::Restart { down }).verb("create").skip(1).times(1));
        make(&api, "first").await.unwrap();
        assert_eq!(root(&make(&api, "second").await.unwrap_err()), "connection reset by peer");
        assert_eq!(root(&api.get("first").await.unwrap_err()), "connection refused");
        server.clock().sleep(Duration::from_secs(21)).await;
        names(&api).await.len() == 2
    };
    let mut times_done = 0;
    for seed in 0..20 {
        times_done += u32::from(done(seed).await);
    }
    assert!((4..=16).contains(&times_done), "{times_done} of 20");
}

#[tokio::test(start_paused = true)]
async fn credentials_grow_old_and_new_ones_may_be_had() {
    let server = server();
    let (old, never) = (server.client(), server.client_as("jane"));
    server.faults().expire_tokens(true);
    assert_eq!(status(maps(&old).get("a").await.unwrap_err()).0, 401);
    assert!(maps(&server.client()).get_opt("a").await.unwrap().is_none());
    assert_eq!(status(maps(&never).get("a").await.unwrap_err()).0, 401);
    server.faults().expire_tokens(false);
    assert_eq!(status(maps(&server.client()).get("a").await.unwrap_err()).0, 401);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_of_another_authority_is_not_trusted_by_those_who_know_the_old_one() {
    let server = server();
    let old = server.client();
    server.faults().rotate_certificates(true);
    assert_eq!(root(&maps(&old).get("a").await.unwrap_err()), "invalid peer certificate: UnknownIssuer");
    assert!(maps(&server.client()).get_opt("a").await.unwrap().is_none());
    server.faults().rotate_certificates(false);
    assert!(maps(&server.client()).get_opt("a").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_days_off_cannot_check_the_certificate() {
    let server = server();
    server.faults().clients_are_late_by(SignedDuration::from_mins(7));
    assert!(maps(&server.client()).get_opt("a").await.unwrap().is_none());
    for (days, words) in [(3, "not valid yet"), (-3, "expired")] {
        server.faults().clients_are_late_by(SignedDuration::from_hours(24 * days));
        let said = root(&maps(&server.client()).get("a").await.unwrap_err());
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn short_pages_hold_everything_between_them() {
    let server = server();
    let api = maps(&server.client());
    for name in ["a", "b", "c", "d", "e"] {
        make(&api, name).await.unwrap();
    }
    server.faults().limit_pages(Some(2));
    let first = api.list(&ListParams::default().limit(500)).await.unwrap();
    assert_eq!(first.items.len(), 2);
    let token = first.metadata.continue_.unwrap();
    server.faults().add(FaultRule::new(Fault::Expired).verb("list").query("continue=").times(1));
    let next = ListParams::default().limit(500).continue_token(&token);
    assert_eq!(status(api.list(&next).await.unwrap_err()).0, 410);
    assert_eq!(api.list(&next).await.unwrap().items.len(), 2);
    assert_eq!(names(&api).await.len(), 5, "who asks for no pages gets none");
}
