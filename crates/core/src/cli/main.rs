//! From the process's arguments to its exit code.

mod rehearsals;

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::ExitCode;

use clap::ArgMatches;
use toolbox_cluster::Cluster;
use toolbox_engine::{Clock, Exit, Redactor, Report, Why};

use super::app::{App, Refusal};
use super::args::{GlobalArgs, Output};
use super::display::{Paint, Surface, failure_lines};
use super::own::Own;
use super::parse::{Asked, Ended, Parsed, parse, shown};
use super::run::{Context, Finished, Stage, failure_json};
use super::signals::Signals;
use super::undo::clean_up;
use super::verb::Verb;
use super::{compare, connect, external, log, output, panics, rehearse, settings_view, why};
use crate::EnvMap;
use crate::config::ConfigError;

/// Runs a program.
pub fn main(app: App) -> ExitCode {
    panics::install();
    let words: Vec<OsString> = std::env::args_os().collect();
    // A value that is no text can neither be used nor printed.
    let env = EnvMap::new(
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
    );
    let exit = std::panic::catch_unwind(AssertUnwindSafe(|| start(&app, &words, &env)));
    ExitCode::from(exit.unwrap_or(Exit::Bug.code()))
}

/// The process's exit code: one of ours, or that of a program that was run.
fn start(app: &App, words: &[OsString], env: &EnvMap) -> u8 {
    let here = std::env::current_dir().unwrap_or_default();
    let exit = match parse(app, words, env, &here) {
        Ok(parsed) => return Program { app, words, env, parsed, scripted: false }.run(),
        Err(Ended::Clap(error)) => clap_message(app, words, &error),
        Err(Ended::Why(why)) => complain(&why, Paint::detect(super::args::Color::Auto, env)),
        Err(Ended::Unknown(word, error)) => match external::find(app.name(), &word, env.get("PATH")) {
            Some(program) => {
                let error = external::become_it(&program, words.get(2..).unwrap_or_default());
                let problem = format!("cannot be started: {}", crate::config::plain(&error));
                let why = ConfigError::file(program.display().to_string(), problem);
                complain(&why.into(), Paint(false))
            }
            None => clap_message(app, words, &error),
        },
    };
    exit.code()
}

/// Help, the version, or what is wrong with the words.
fn clap_message(app: &App, words: &[OsString], error: &clap::Error) -> Exit {
    let text = error.render().to_string();
    if error.use_stderr() {
        let text =
            text.replace("For more information, try '--help'.", &format!("next: see {} --help", named(app, words)));
        output::complain(text.trim_end());
        Exit::Usage
    } else {
        printed(output::print(&text))
    }
}

/// The command that the words name, as far as they name one.
fn named(app: &App, words: &[OsString]) -> String {
    let command = shown(app);
    let (mut at, mut name) = (&command, app.name().to_owned());
    for word in words.iter().skip(1) {
        if let Some(inner) = at.find_subcommand(word) {
            at = inner;
            name = format!("{name} {}", inner.get_name());
        }
    }
    name
}

fn complain(why: &Why, paint: Paint) -> Exit {
    output::complain(&failure_lines(why, "error", paint).join("\n"));
    why.exit
}

fn printed(result: Result<(), String>) -> Exit {
    match result {
        Ok(()) => Exit::Done,
        Err(problem) => {
            output::complain(&format!("error: {problem}"));
            Exit::Configuration
        }
    }
}

struct Program<'a> {
    app: &'a App,
    words: &'a [OsString],
    env: &'a EnvMap,
    parsed: Parsed,
    /// Whether the verb is the one that the scenario names.
    scripted: bool,
}

impl Program<'_> {
    fn run(&self) -> u8 {
        let redactor = Redactor::new();
        for setting in self.parsed.settings.iter().filter(|setting| setting.secret) {
            for value in &setting.values {
                redactor.register(value);
            }
        }
        if let Err(problem) = log::start(self.globals(), &redactor) {
            let next = "write it as tracing does, such as toolbox_cluster=debug";
            return complain(&super::wrong_flag("--log-filter", problem, next), self.paint()).code();
        }
        if self.globals().act_as.is_none() && !self.globals().act_as_group.is_empty() {
            let why = super::wrong_flag("--as-group", "a group needs a user", "name the user as well: --as USER");
            return complain(&why, self.paint()).code();
        }
        let exit = match &self.parsed.asked {
            Asked::Verb(matches) => match self.verb(matches) {
                Ok(verb) => self.on_a_cluster(verb, &redactor),
                Err(exit) => exit,
            },
            Asked::Rehearse(args, None) if args.serve => return self.serve(args),
            Asked::Rehearse(args, matches) => self.rehearse(args, matches.as_ref(), &redactor),
            Asked::Own(own) => self.own(own, &redactor),
        };
        exit.code()
    }

    fn globals(&self) -> &GlobalArgs {
        &self.parsed.globals
    }

    fn paint(&self) -> Paint {
        Paint::detect(self.globals().color, self.env)
    }

    fn verb(&self, matches: &ArgMatches) -> Result<Box<dyn Verb>, Exit> {
        match self.app.verb(matches) {
            Some(Ok(verb)) => Ok(verb),
            Some(Err(Refusal::Why(why))) => Err(complain(&why, self.paint())),
            Some(Err(Refusal::Clap(error))) => Err(clap_message(self.app, self.words, &error)),
            None => {
                let why = super::wrong_flag("VERB", "no verb is named", format!("see {} --help", self.app.name()));
                Err(complain(&why, self.paint()))
            }
        }
    }

    fn context(&self, rehearsal: bool) -> Context<'_> {
        let words = self.words.iter().skip(1);
        Context {
            program: self.app.name(),
            globals: self.globals(),
            settings: &self.parsed.settings,
            env: self.env,
            words: words.map(|word| word.to_string_lossy().into_owned()).collect(),
            notes: &self.parsed.notes,
            paint: self.paint(),
            surface: Surface::detect(self.env, rehearsal),
            heard: None,
        }
    }

    fn on_a_cluster(&self, verb: Box<dyn Verb>, redactor: &Redactor) -> Exit {
        let finished = match runtime(false) {
            Ok(runtime) => complete(runtime, self.real(verb, redactor)),
            Err(exit) => return exit,
        };
        self.answer(finished, redactor)
    }

    async fn real(&self, verb: Box<dyn Verb>, redactor: &Redactor) -> Finished {
        let context = self.context(false);
        let options = connect::options(self.globals(), &self.parsed.settings, self.env);
        connect::hide_credentials(&options, redactor);
        let stage = Stage { clock: Clock::real(), rehearsal: None };
        let signals = Signals::default();
        let connecting = Cluster::connect(&options, stage.clock.clone());
        tokio::select! {
            biased;
            () = signals.listen() => rehearse::unreachable(),
            finished = super::run::verb(&context, &stage, &signals, verb, redactor, connecting) => finished,
        }
    }

    /// Prints the result, and only that, secrets out.
    fn answer(&self, mut finished: Finished, redactor: &Redactor) -> Exit {
        let output = self.globals().output;
        let text = match (finished.answer.take(), output) {
            (Some(answer), _) => output::form(&clean(answer, redactor), output),
            (None, Output::Json) if finished.exit != Exit::Done => {
                let mut json = failure_json(&finished);
                redactor.json(&mut json);
                output::pretty(&json)
            }
            (None, _) => return finished.exit,
        };
        match printed(output::print(&text)) {
            Exit::Done => finished.exit,
            // What was asked for was done, but nobody got the answer.
            wrong if finished.exit == Exit::Done => wrong,
            _ => finished.exit,
        }
    }

    fn own(&self, own: &Own, redactor: &Redactor) -> Exit {
        if !matches!(own, Own::Cleanup(_)) {
            for note in &self.parsed.notes {
                output::complain(&format!("note: {note}"));
            }
        }
        let answer = match own {
            Own::Why(args) => self.why(args, redactor),
            Own::Report(args) => match &args.other {
                Some(other) => compare::two(&args.run_dir, other),
                None => compare::one(&args.run_dir, self.paint()),
            },
            Own::Cleanup(args) => match clean_up(&args.run_dir) {
                Ok(verb) => return self.on_a_cluster(verb, redactor),
                Err(why) => Err(why),
            },
            Own::Config => Ok(settings_view::view(
                &self.parsed.settings,
                &self.parsed.schema,
                self.parsed.file.as_deref(),
                self.paint(),
            )),
            Own::Completions(args) => {
                let mut text = Vec::new();
                let mut command = shown(self.app);
                clap_complete::generate(args.shell, &mut command, self.app.name(), &mut text);
                return printed(output::print(&String::from_utf8_lossy(&text)));
            }
            Own::Man(args) => manual(self.app, &args.dir),
        };
        match answer {
            Ok(report) => printed(output::print(&output::form(&report, self.globals().output))),
            Err(why) => {
                let text = failure_lines(&why, "error", self.paint()).join("\n");
                output::complain(&redactor.text(&text));
                why.exit
            }
        }
    }

    fn why(&self, args: &super::own::WhyArgs, redactor: &Redactor) -> Result<Report, Why> {
        why::check(&args.object)?;
        let options = connect::options(self.globals(), &self.parsed.settings, self.env);
        connect::hide_credentials(&options, redactor);
        let Ok(runtime) = runtime(false) else {
            return Err(ConfigError::file("runtime", "cannot be started").into());
        };
        let report = complete(runtime, async {
            let cluster = Cluster::connect(&options, Clock::real()).await?;
            for line in connect::describe(cluster.info()) {
                output::complain(&line);
            }
            why::why(&cluster, args, self.paint()).await
        })?;
        Ok(clean(report, redactor))
    }
}

/// What is printed without what the redactor knows.
fn clean(report: Report, redactor: &Redactor) -> Report {
    let mut json = report.json;
    redactor.json(&mut json);
    Report { text: redactor.text(&report.text).into_owned(), json }
}

/// Runs to the end. What still blocks then, such as a credential plugin that nobody answers, does not hold up the exit.
fn complete<T>(runtime: tokio::runtime::Runtime, future: impl Future<Output = T>) -> T {
    let done = runtime.block_on(future);
    runtime.shutdown_background();
    done
}

/// One thread is enough: a run waits for the cluster nearly all the time. `paused` is for the rehearsal.
fn runtime(paused: bool) -> Result<tokio::runtime::Runtime, Exit> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(paused);
    builder.build().map_err(|error| {
        output::complain(&format!("error: tbx: cannot start: {error}"));
        Exit::Bug
    })
}

fn manual(app: &App, dir: &Path) -> Result<Report, Why> {
    let failed = |error: std::io::Error| -> Why {
        ConfigError::file(dir.display().to_string(), format!("cannot be written: {}", crate::config::plain(&error)))
            .help("name a directory that can be written")
            .into()
    };
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(shown(app), dir).map_err(failed)?;
    Ok(Report {
        text: format!("manual pages are in {}", dir.display()),
        json: serde_json::json!({"dir": dir.display().to_string()}),
    })
}
