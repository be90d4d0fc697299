//! A program with one noun, as small as it gets: what a tool's author writes, and what the tests of the command line run.
//!
//! `cargo run -p toolbox-core --example demo -- rehearse demo put hello --value world`

use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use toolbox_core::cluster::{Cluster, Query, kinds};
use toolbox_core::engine::plan::{Act, Effect};
use toolbox_core::engine::{Cause, FailureVerdict, Plan, Report, Step, StepSpec, Verdict, Why};
use toolbox_core::{App, Noun, Verb, VerbEnv, VerbName};

/// Things to try the command line with
#[derive(clap::Subcommand)]
enum Demo {
    /// Put a value into a ConfigMap, and wait until it is there
    Put(PutArgs),
    /// Ask whether a ConfigMap is there: exit code 0 is yes, 1 is no
    HasMap {
        /// Its name
        name: String,
    },
    /// Wait for something that never comes
    WaitForever,
    /// Fail in the middle, after having made something
    FailLater,
    /// Run into a bug of this program
    Bug,
}

/// Arguments of `demo put`.
#[derive(clap::Args)]
struct PutArgs {
    /// Name of the ConfigMap
    name: String,
    /// What to put
    #[arg(long, default_value = "nothing", env = "DEMO_VALUE")]
    value: String,
    /// A token that no file shows
    #[arg(long, hide_env_values = true)]
    api_token: Option<String>,
    /// Count the replicas
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=9))]
    replica_count: u32,
    /// Insist
    #[arg(long)]
    force: bool,
}

/// A step of the demo, checked.
enum Spec {
    Put { name: String, value: String },
    HasMap(String),
    WaitForever,
    FailLater,
    Bug,
}

impl TryFrom<PutArgs> for Spec {
    type Error = Why;
    fn try_from(args: PutArgs) -> Result<Self, Why> {
        if args.name.is_empty() || args.name.contains('_') {
            let text = format!("`{}` is no name of a ConfigMap", args.name);
            return Err(toolbox_core::cli::wrong_flag("NAME", text, "use letters, digits and dashes"));
        }
        let value = format!("{} x{}{}", args.value, args.replica_count, if args.force { "!" } else { "" });
        Ok(Spec::Put { name: args.name, value })
    }
}

impl Noun for Demo {
    fn verb(self) -> Result<Box<dyn Verb>, Why> {
        Ok(Box::new(match self {
            Demo::Put(args) => Spec::try_from(args)?,
            Demo::HasMap { name } => Spec::HasMap(name),
            Demo::WaitForever => Spec::WaitForever,
            Demo::FailLater => Spec::FailLater,
            Demo::Bug => Spec::Bug,
        }))
    }
}

struct NotThere;

impl Cause for NotThere {
    fn code(&self) -> &'static str {
        "not-there"
    }
    fn text(&self) -> String {
        "is not there".to_owned()
    }
    fn next(&self) -> String {
        "put it there: demo put NAME".to_owned()
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Product
    }
}

/// Adds the steps that put a value, and returns when it is seen.
fn put(plan: &mut Plan, cluster: &Cluster, name: &str, value: &str) -> toolbox_core::engine::plan::Out<String> {
    let manifest = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": {"value": value},
    });
    let apply = StepSpec::change("demo.apply", "Apply the ConfigMap").does(Effect::on(
        Act::Apply,
        &kinds::CONFIG_MAP,
        Some("default"),
        name,
    ));
    let door = cluster.clone();
    let applied = plan.step(apply, (), move |cx, ()| async move {
        let applied = door.apply(&cx, manifest).await?;
        let what = applied.what();
        Ok(if applied.is_change() { Step::Changed((), what) } else { Step::AlreadySo((), what) })
    });
    let wait = StepSpec::wait("demo.wait", "The ConfigMap is seen", Duration::from_secs(60)).named("map");
    let (door, name) = (cluster.clone(), name.to_owned());
    plan.step(wait, applied, move |cx, _| async move {
        let watched = door.watch(Query::named(&kinds::CONFIG_MAP, Some("default"), &name));
        let seen = cx.wait(watched.changes(), || {
            watched.judge(|objects| match objects.first() {
                Some(object) => Verdict::Done(object.text("/data/value").unwrap_or_default().to_owned()),
                None => Verdict::Pending(Why::waiting(
                    kinds::CONFIG_MAP.object(Some("default"), &name),
                    "not-seen",
                    "is not there yet",
                )),
            })
        });
        Ok(Step::AlreadySo(seen.await?, "it is there".to_owned()))
    })
}

impl Verb for Spec {
    fn name(&self) -> VerbName {
        VerbName::new(
            "demo",
            match self {
                Spec::Put { .. } => "put",
                Spec::HasMap(_) => "has_map",
                Spec::WaitForever => "wait_forever",
                Spec::FailLater => "fail_later",
                Spec::Bug => "bug",
            },
        )
    }

    fn plan(self: Box<Self>, env: &VerbEnv) -> Result<Plan, Why> {
        let mut plan = Plan::new(self.name().to_string());
        let cluster = env.cluster.clone();
        match *self {
            Spec::Put { name, value } => {
                let seen = put(&mut plan, &cluster, &name, &value);
                plan.answer(&seen, |value| Report { text: value.clone(), json: json!({"value": value}) });
            }
            Spec::HasMap(name) => {
                plan.mark_probe();
                let ask = StepSpec::ask("demo.look", "Look for the ConfigMap");
                let found = plan.step(ask, (), move |_, ()| async move {
                    let object = kinds::CONFIG_MAP.object(Some("default"), &name);
                    match cluster.get(&kinds::CONFIG_MAP, Some("default"), &name).await? {
                        Some(_) => Ok(Step::AlreadySo((), "it is there".to_owned())),
                        None => Err(Why::new(object, &NotThere)),
                    }
                });
                plan.answer(&found, |()| Report { text: "yes".to_owned(), json: json!(true) });
            }
            Spec::WaitForever => {
                let wait = StepSpec::wait("demo.never", "Something that never comes", Duration::from_secs(3600))
                    .named("never");
                plan.step(wait, (), move |cx, ()| async move {
                    let object = kinds::POD.object(Some("default"), "godot");
                    cx.pending(Why::waiting(object, "not-seen", "has not come"));
                    std::future::pending::<()>().await;
                    Ok(Step::AlreadySo((), String::new()))
                });
                let capture = StepSpec::ask("demo.capture", "Look around");
                plan.finalizer(capture, |cx| async move {
                    cx.file("logs/around.txt", "nothing to see\n");
                    Ok(Step::AlreadySo((), "looked around".to_owned()))
                });
            }
            Spec::FailLater => {
                let seen = put(&mut plan, &cluster, "half-done", "x");
                plan.step(StepSpec::ask("demo.fail", "Fail"), seen, |_, _| async move {
                    let object = kinds::POD.object(Some("default"), "driver");
                    Err::<Step<()>, _>(Why::new(object, &NotThere).with("log", "first line\nsecond line"))
                });
            }
            Spec::Bug => {
                plan.step(StepSpec::ask("demo.bug", "Run into a bug"), (), |cx, ()| async move {
                    let word = cx.id().to_owned();
                    let number: u32 = word.parse().expect("invariant: broken on purpose");
                    Ok(Step::AlreadySo(number, word))
                });
            }
        }
        Ok(plan)
    }
}

fn main() -> ExitCode {
    toolbox_core::cli::main(App::new("demo").noun::<Demo>("demo", &["old_demo"]))
}
