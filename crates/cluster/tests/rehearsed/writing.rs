//! Changes: applied once, journalled, taken back, only told of in a dry run.

use std::time::Duration;

use serde_json::{Value, json};
use toolbox_cluster::{Change, MANAGED_BY, RUN, kinds};
use toolbox_engine::journal::Entry;
use toolbox_engine::{Exit, ObjectRef};
use toolbox_rehearsal::{Fault, FaultRule};

use crate::common::{MAPS, Stage};

fn map(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"k": value}})
}

fn refer() -> ObjectRef {
    kinds::CONFIG_MAP.object(Some("default"), "a")
}

async fn apply(stage: &Stage, object: Value) -> Change {
    stage.step(|cx, cluster| async move { cluster.apply(&cx, object).await }).await.unwrap().change
}

#[tokio::test(start_paused = true)]
async fn what_is_applied_is_created_then_left_alone_then_changed_and_taken_back() {
    let stage = Stage::new();
    assert_eq!(apply(&stage, map("1")).await, Change::Created);
    let made = stage.raw("GET", &format!("{MAPS}/a"), Value::Null).await;
    assert_eq!(made["metadata"]["labels"][MANAGED_BY], "tbx");
    assert_eq!(made["metadata"]["annotations"][RUN], "run-1");
    let version = made["metadata"]["resourceVersion"].clone();
    assert_eq!(apply(&stage, map("1")).await, Change::Unchanged);
    let same = stage.raw("GET", &format!("{MAPS}/a"), Value::Null).await;
    assert_eq!(same["metadata"]["resourceVersion"], version);
    assert_eq!(apply(&stage, map("2")).await, Change::Updated);
    let journal = stage.kept.journal.lock().unwrap().clone();
    let [Entry::Making { object: making, .. }, Entry::Made { object: done, .. }, Entry::Changed { undo, .. }] =
        &journal[..]
    else {
        panic!("{journal:?}")
    };
    assert_eq!((making.uid.as_deref(), done.uid.is_some()), (None, true));
    assert_eq!(*undo, json!({"data": {"k": "1"}}));
    let undo = undo.clone();
    stage
        .step(|cx, cluster| async move { cluster.patch(&cx, &kinds::CONFIG_MAP, Some("default"), "a", undo).await })
        .await
        .unwrap();
    let back = stage.raw("GET", &format!("{MAPS}/a"), Value::Null).await;
    assert_eq!(back["data"], json!({"k": "1"}));
    let files = stage.kept.files.lock().unwrap();
    assert_eq!(files[0].0, "manifests/configmap-default-a.json");
}

#[tokio::test(start_paused = true)]
async fn a_field_of_another_manager_is_a_conflict_until_it_is_forced() {
    let stage = Stage::new();
    stage.raw("POST", &format!("{MAPS}?fieldManager=kubectl-edit"), map("theirs")).await;
    let why = stage.step(|cx, cluster| async move { cluster.apply(&cx, map("ours")).await }).await.unwrap_err();
    assert_eq!(why.to_string(), "ConfigMap/default/a: `kubectl-edit` owns .data.k");
    let forced =
        stage.step(|cx, cluster| async move { cluster.with_force_conflicts(true).apply(&cx, map("ours")).await });
    let forced = forced.await.unwrap();
    assert_eq!(forced.change, Change::Updated);
    // What was there before us is not marked as ours.
    assert_eq!(forced.object.label(MANAGED_BY), None);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_tells_and_changes_nothing() {
    let stage = Stage::new();
    let told = stage.dry(|cx, cluster| async move { cluster.apply(&cx, map("1")).await }).await;
    assert_eq!(told.would, ["create ConfigMap default/a"]);
    apply(&stage, map("1")).await;
    let before = stage.api.dump();
    let told = stage.dry(|cx, cluster| async move { cluster.apply(&cx, map("2")).await }).await;
    assert_eq!(told.would, ["change ConfigMap default/a: data.k 1 → 2"]);
    let told = stage.dry(|cx, cluster| async move { cluster.apply(&cx, map("1")).await }).await;
    assert!(told.would.is_empty());
    let patch = json!({"data": {"k": "3"}});
    let told = stage
        .dry(|cx, cluster| async move { cluster.patch(&cx, &kinds::CONFIG_MAP, Some("default"), "a", patch).await })
        .await;
    assert_eq!(told.would, ["change ConfigMap default/a: data.k 1 → 3"]);
    let told = stage.dry(|cx, cluster| async move { cluster.delete(&cx, &refer()).await }).await;
    assert_eq!(told.would, ["delete ConfigMap default/a"]);
    assert_eq!(stage.api.dump(), before);
    assert_eq!(stage.kept.journal.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_what_an_earlier_step_makes_possible_still_tells() {
    let stage = Stage::new();
    let policy = json!({"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "gpu"}});
    let told = stage.dry(|cx, cluster| async move { cluster.apply(&cx, policy).await }).await;
    assert_eq!(told.would, ["create ClusterPolicy gpu"]);
    let inside = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "later"}});
    let told = stage.dry(|cx, cluster| async move { cluster.apply(&cx, inside).await }).await;
    assert_eq!(told.would, ["create ConfigMap later/a"]);
}

#[tokio::test(start_paused = true)]
async fn only_the_life_that_was_meant_is_deleted() {
    let stage = Stage::new();
    let uid = stage.make_map("a", "1").await["metadata"]["uid"].as_str().unwrap().to_owned();
    let other = refer().with_uid("another-life");
    let gone = stage.step(|cx, cluster| async move { cluster.delete(&cx, &other).await }).await.unwrap();
    assert!(!gone);
    let right = refer().with_uid(uid);
    let again = right.clone();
    assert!(stage.step(|cx, cluster| async move { cluster.delete(&cx, &right).await }).await.unwrap());
    assert!(!stage.step(|cx, cluster| async move { cluster.delete(&cx, &again).await }).await.unwrap());
    assert!(matches!(&stage.kept.journal.lock().unwrap()[..], [Entry::Deleted { .. }]));
}

#[tokio::test(start_paused = true)]
async fn writes_survive_the_troubles_of_the_api() {
    let faults = [
        Fault::ConnectionReset,
        Fault::Stalled,
        Fault::Status(503),
        Fault::Status(500),
        Fault::TooManyRequests { retry_after: 3 },
        Fault::Unanswered,
        Fault::Conflict,
        Fault::Restart { down: Duration::from_secs(10) },
    ];
    for fault in faults {
        let stage = Stage::new();
        for verb in ["create", "patch", "delete"] {
            stage.fault(FaultRule::new(fault.clone()).verb(verb).times(2));
        }
        assert_eq!(apply(&stage, map("1")).await, Change::Created, "{fault:?}");
        assert_eq!(apply(&stage, map("2")).await, Change::Updated, "{fault:?}");
        let pod = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "b-", "namespace": "default"}});
        let made = stage.step(|cx, cluster| async move { cluster.create(&cx, pod).await }).await.unwrap();
        assert!(made.object.name().starts_with("b-"), "{fault:?}");
        let made = made.object.refer();
        assert!(stage.step(|cx, cluster| async move { cluster.delete(&cx, &made).await }).await.unwrap(), "{fault:?}");
        let maps = stage.raw("GET", MAPS, Value::Null).await;
        let ours =
            maps["items"].as_array().unwrap().iter().filter(|map| map["metadata"]["labels"][MANAGED_BY] == "tbx");
        assert_eq!(ours.count(), 1, "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_on_its_way_out_is_waited_for_before_it_is_made_again() {
    let stage = Stage::new();
    let mut held = map("old");
    held["metadata"]["finalizers"] = json!(["example.test/cleanup"]);
    stage.raw("POST", MAPS, held).await;
    stage.drop_map("a").await;
    let wait = stage.step(|cx, cluster| async move { cluster.apply(&cx, map("new")).await });
    let release = async {
        stage.sleep(20).await;
        stage.raw("PATCH", &format!("{MAPS}/a"), json!({"metadata": {"finalizers": null}})).await;
    };
    let (done, ()) = tokio::join!(wait, release);
    assert_eq!(done.unwrap().change, Change::Created);
    let pending = stage.kept.pending();
    assert!(pending.last().unwrap().contains("example.test/cleanup"), "{pending:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_object_is_final_at_once_and_names_its_fields() {
    let stage = Stage::new();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}, "spec": {"containers": []}});
    let why = stage.step(|cx, cluster| async move { cluster.create(&cx, pod).await }).await.unwrap_err();
    assert_eq!(why.exit, Exit::Configuration, "{why:?}");
    assert!(stage.clock.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_there_is_accepted_only_when_it_is_as_wanted() {
    let stage = Stage::new();
    stage.make_map("a", "1").await;
    let same = stage.step(|cx, cluster| async move { cluster.create(&cx, map("1")).await }).await.unwrap();
    assert_eq!(same.change, Change::Unchanged);
    let why = stage.step(|cx, cluster| async move { cluster.create(&cx, map("2")).await }).await.unwrap_err();
    assert_eq!(why.code, "already-exists");
    assert_eq!(why.evidence[0].text, "data.k 1 → 2");
}

#[tokio::test(start_paused = true)]
async fn secrets_are_kept_without_their_values() {
    let stage = Stage::new();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"token": "s3cret"}});
    assert_eq!(apply(&stage, secret).await, Change::Created);
    let files = stage.kept.files.lock().unwrap();
    assert!(files[0].1.contains("***") && !files[0].1.contains("s3cret"));
}
