//! The runner's promises: order by needs, independent branches, deadlines with reasons, guards, finalizers, stops.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::clock::Clock;
use crate::event::{Ended, Event, Reporter, Stamped};
use crate::verdict::Verdict;
use crate::why::{Exit, ObjectRef};

#[derive(Default)]
struct Seen(Mutex<Vec<Stamped>>);

impl Reporter for Seen {
    fn event(&self, event: &Stamped) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Seen {
    /// When a step was started, in whole seconds.
    fn started(&self, id: &str) -> u64 {
        let events = self.0.lock().unwrap();
        let found = events.iter().find(|e| matches!(&e.event, Event::Started { step, .. } if step == id));
        found.unwrap_or_else(|| panic!("{id} was not started")).t as u64
    }
}

fn options() -> (RunOptions, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let mut options = RunOptions::new(Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()));
    options.reporters.push(seen.clone());
    (options, seen)
}

fn sleeping(plan: &mut Plan, id: &str, needs: impl Needs, seconds: u64) -> Out<u64> {
    plan.step(StepSpec::change(id, id), needs, move |cx, _| async move {
        cx.clock().sleep(Duration::from_secs(seconds)).await;
        Ok(Step::Changed(seconds, "slept".to_owned()))
    })
}

fn ended<'a>(outcome: &'a Outcome, id: &str) -> &'a Ended {
    &outcome.steps.iter().find(|step| step.id == id).unwrap_or_else(|| panic!("no step {id}")).ended
}

fn broken() -> Why {
    let mut why = Why::waiting(ObjectRef::thing("test", "x"), "broken", "is broken");
    why.exit = Exit::Failed;
    why
}

#[tokio::test(start_paused = true)]
async fn a_step_starts_the_moment_its_needs_are_done() {
    let mut plan = Plan::new("test");
    let a = sleeping(&mut plan, "a", (), 10);
    let b = sleeping(&mut plan, "b", (), 30);
    let c = sleeping(&mut plan, "c", a, 5);
    let sum = plan.step(StepSpec::ask("sum", "sum"), (a, b, c), |_, (a, b, c)| async move {
        Ok(Step::AlreadySo(*a + *b + *c, String::new()))
    });
    plan.answer(&sum, |sum| Report { text: sum.to_string(), json: (*sum).into() });
    let (options, seen) = options();
    let outcome = run(plan, options).await;
    assert_eq!(outcome.exit, Exit::Done);
    assert_eq!(outcome.report.unwrap().text, "45");
    assert_eq!([seen.started("a"), seen.started("b"), seen.started("c"), seen.started("sum")], [0, 0, 10, 30]);
}

#[tokio::test(start_paused = true)]
async fn independent_branches_go_on_after_a_failure() {
    let mut plan = Plan::new("test");
    let bad: Out<()> = plan.step(StepSpec::ask("bad", "bad"), (), |_, ()| async { Err(broken()) });
    let _after = sleeping(&mut plan, "after-bad", bad.done(), 1);
    let _other = sleeping(&mut plan, "other", (), 60);
    let (options, _) = options();
    let outcome = run(plan, options).await;
    assert_eq!(outcome.exit, Exit::Failed);
    assert!(matches!(ended(&outcome, "after-bad"), Ended::NotRun { reason } if reason.contains("bad")));
    assert!(matches!(ended(&outcome, "other"), Ended::Changed { .. }));
}

#[tokio::test(start_paused = true)]
async fn fail_fast_stops_the_independent_branches() {
    let mut plan = Plan::new("test");
    let _bad: Out<()> = plan.step(StepSpec::ask("bad", "bad"), (), |_, ()| async { Err(broken()) });
    let _other = sleeping(&mut plan, "other", (), 60);
    let (mut options, _) = options();
    options.fail_fast = true;
    let outcome = run(plan, options).await;
    assert_eq!(*ended(&outcome, "other"), Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_quotes_the_last_reason_and_takes_a_diagnosis() {
    let mut plan = Plan::new("test");
    let (_sender, receiver) = crate::watch::channel(0);
    let _wait: Out<()> =
        plan.step(StepSpec::wait("w", "waits", Duration::from_secs(600)).named("thing"), (), |cx, ()| async move {
            cx.diagnose_with(|| async { vec![crate::why::Evidence { label: "log".into(), text: "tail".into() }] });
            let why = Why::waiting(ObjectRef::thing("Pod", "p"), "slow", "is slow");
            let () = cx.wait(Changes::of(receiver), || Verdict::<()>::Pending(why.clone())).await?;
            Ok(Step::AlreadySo((), String::new()))
        });
    let (mut options, _) = options();
    options.deadlines.insert("thing".to_owned(), Duration::from_secs(90));
    let outcome = run(plan, options).await;
    let why = outcome.why.unwrap();
    assert_eq!((outcome.exit, why.exit), (Exit::TimedOut, Exit::TimedOut));
    assert_eq!(why.to_string(), "Pod/p: is slow (gave up after 1m30s)");
    assert_eq!(why.next, "see what holds it up: tbx why Pod/p");
    assert_eq!(why.evidence[0].text, "tail");
}

#[tokio::test(start_paused = true)]
async fn a_guard_skips_its_part_and_the_rest_goes_on_without_it() {
    for needed in [true, false] {
        let mut plan = Plan::new("test");
        let guard = plan.step(StepSpec::ask("guard", "guard"), (), move |_, ()| async move {
            let guard = if needed { Guard::Needed } else { Guard::NotNeeded("there already".to_owned()) };
            Ok(Step::AlreadySo(guard, String::new()))
        });
        let part = plan.when(&guard, "part", |plan| {
            let one = sleeping(plan, "one", (), 10);
            sleeping(plan, "two", one, 10)
        });
        let rest = plan.step(StepSpec::ask("rest", "rest"), part, |_, part| async move {
            Ok(Step::AlreadySo(part.as_ref().as_ref().map(|value| **value), String::new()))
        });
        plan.answer(&rest, |value| Report { text: format!("{value:?}"), json: serde_json::Value::Null });
        assert_eq!(plan.planned().last().unwrap().needs, ["guard", "two"]);
        let (options, _) = options();
        let outcome = run(plan, options).await;
        assert_eq!(outcome.report.as_ref().unwrap().text, if needed { "Some(10)" } else { "None" });
        if !needed {
            assert_eq!(*ended(&outcome, "two"), Ended::Skipped { reason: "there already".to_owned() });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn finalizers_run_after_a_failure_and_do_not_fail_a_passed_run() {
    let mut plan = Plan::new("test");
    let _ok = sleeping(&mut plan, "ok", (), 1);
    plan.finalizer(StepSpec::ask("capture", "capture"), |_| async { Err(broken()) });
    let (options, _) = options();
    let outcome = run(plan, options).await;
    assert_eq!(outcome.exit, Exit::Done);
    assert!(matches!(ended(&outcome, "capture"), Ended::Failed { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_running_steps_and_gives_finalizers_the_grace_time() {
    let mut plan = Plan::new("test");
    let long = sleeping(&mut plan, "long", (), 3600);
    let _next = sleeping(&mut plan, "next", long, 1);
    for (id, seconds) in [("quick", 5), ("slow", 60)] {
        plan.finalizer(StepSpec::ask(id, id), move |cx| async move {
            cx.clock().sleep(Duration::from_secs(seconds)).await;
            Ok(Step::AlreadySo((), String::new()))
        });
    }
    let (options, _) = options();
    let (interrupt, clock) = (options.interrupt.clone(), options.clock.clone());
    let stop = async {
        clock.sleep(Duration::from_secs(100)).await;
        interrupt.stop("SIGTERM", Exit::Terminated);
    };
    let (outcome, ()) = tokio::join!(run(plan, options), stop);
    assert_eq!(outcome.exit, Exit::Terminated);
    assert_eq!(*ended(&outcome, "long"), Ended::Stopped);
    assert!(matches!(ended(&outcome, "next"), Ended::NotRun { .. }));
    assert!(matches!(ended(&outcome, "quick"), Ended::AlreadySo { .. }));
    assert_eq!(*ended(&outcome, "slow"), Ended::Stopped);
    assert_eq!(clock.elapsed().as_secs(), 115);
}

#[tokio::test(start_paused = true)]
async fn the_runs_own_deadline_quotes_the_reason_and_leaves_finalizers_their_time() {
    let mut plan = Plan::new("test");
    let (_sender, receiver) = crate::watch::channel(0);
    let _wait: Out<()> = plan.step(StepSpec::wait("w", "waits", Duration::from_secs(6000)), (), |cx, ()| async move {
        let why = Why::waiting(ObjectRef::thing("Pod", "p"), "slow", "is slow");
        let () = cx.wait(Changes::of(receiver), || Verdict::<()>::Pending(why.clone())).await?;
        Ok(Step::AlreadySo((), String::new()))
    });
    plan.finalizer(StepSpec::ask("capture", "capture").deadline(Duration::from_secs(600)), |cx| async move {
        cx.clock().sleep(Duration::from_secs(120)).await;
        Ok(Step::AlreadySo((), String::new()))
    });
    let (mut options, _) = options();
    options.run_deadline = Some(Duration::from_secs(3600));
    let outcome = run(plan, options).await;
    assert_eq!(outcome.exit, Exit::TimedOut);
    assert_eq!(outcome.why.as_ref().unwrap().to_string(), "Pod/p: is slow (gave up after 1h)");
    assert_eq!(*ended(&outcome, "w"), Ended::Stopped);
    assert!(matches!(ended(&outcome, "capture"), Ended::AlreadySo { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_the_runs_own_deadline_decides_how_it_ends() {
    let mut plan = Plan::new("test");
    let _bad: Out<()> = plan.step(StepSpec::ask("bad", "bad"), (), |_, ()| async { Err(broken()) });
    let _slow = sleeping(&mut plan, "slow", (), 200);
    let (mut options, _) = options();
    options.run_deadline = Some(Duration::from_secs(60));
    let outcome = run(plan, options).await;
    assert_eq!((outcome.exit, outcome.why.unwrap().exit), (Exit::Failed, Exit::Failed));
    assert_eq!(outcome.steps.iter().find(|step| step.id == "slow").unwrap().ended, Ended::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_preview_does_not_wait_for_what_would_not_be_reached() {
    let mut plan = Plan::new("test");
    let bad: Out<()> = plan.step(StepSpec::ask("bad", "bad"), (), |_, ()| async { Err(broken()) });
    let wait: Out<()> = plan.step(StepSpec::wait("w", "waits", Duration::from_secs(60)), bad, |_, _| async {
        panic!("a preview must not wait")
    });
    let _after: Out<()> = plan.step(StepSpec::change("c", "c"), wait, |_, _| async { panic!("never reached") });
    let (options, _) = options();
    let notes: Vec<String> = preview(plan, options).await.into_iter().map(|preview| preview.note).collect();
    assert_eq!(
        notes[1..],
        ["would not run: needs bad, which did not succeed", "would not run: needs w, which did not succeed"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failed_step_and_a_bug() {
    let mut plan = Plan::new("test");
    let _bad: Out<()> = plan.step(StepSpec::ask("bad", "bad"), (), |_, ()| async { panic!("oops") });
    let (options, _) = options();
    let outcome = run(plan, options).await;
    assert_eq!(outcome.exit, Exit::Bug);
    assert!(outcome.why.unwrap().cause.contains("oops"));
}

#[tokio::test(start_paused = true)]
async fn one_more_step_per_item_runs_at_the_same_time() {
    let mut plan = Plan::new("test");
    let burn =
        plan.step(StepSpec::wait("burn", "burn", Duration::from_secs(900)).per("node"), (), |cx, ()| async move {
            let items = vec![("n1".to_owned(), 30u64), ("n2".to_owned(), 40)];
            let spec = StepSpec::wait("burn", "burns", Duration::from_secs(35));
            let results = cx
                .each(items, spec, |cx, seconds| async move {
                    cx.clock().sleep(Duration::from_secs(seconds)).await;
                    Ok(Step::Changed(seconds, "burnt".to_owned()))
                })
                .await;
            let passed: Vec<bool> = results.iter().map(Result::is_ok).collect();
            Ok(Step::AlreadySo(passed, String::new()))
        });
    plan.answer(&burn, |passed| Report { text: format!("{passed:?}"), json: serde_json::Value::Null });
    let (options, seen) = options();
    let outcome = run(plan, options).await;
    assert_eq!(outcome.report.unwrap().text, "[true, false]");
    assert_eq!((seen.started("burn[n1]"), seen.started("burn[n2]")), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_preview_asks_and_tries_but_does_not_wait() {
    let mut plan = Plan::new("test");
    let name = plan.step(StepSpec::ask("name", "name"), (), |_, ()| async {
        Ok(Step::AlreadySo("nfd".to_owned(), "nfd in stable".to_owned()))
    });
    let sub = plan.step(StepSpec::change("sub", "subscribe"), name, |cx, name| async move {
        assert!(cx.dry());
        cx.would(format!("create Subscription {name}"));
        Ok(Step::Changed((), String::new()))
    });
    let csv: Out<String> = plan.step(StepSpec::wait("csv", "csv", Duration::from_secs(60)), sub, |_, _| async {
        panic!("a preview must not wait")
    });
    let _cr: Out<()> = plan.step(StepSpec::change("cr", "cr"), csv, |_, _| async { panic!("not known yet") });
    let (options, _) = options();
    let previews = preview(plan, options).await;
    let lines: Vec<(String, String)> = previews.into_iter().map(|p| (p.would.join(","), p.note)).collect();
    assert_eq!(lines[0].1, "nfd in stable");
    assert_eq!(lines[1].0, "create Subscription nfd");
    assert_eq!(lines[2].1, "waits");
    assert_eq!(lines[3].1, "decided from csv");
}
