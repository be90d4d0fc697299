//! A command line in this process, on a cluster that is connected already: for tests that share one cluster between runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use toolbox_cluster::Cluster;
use toolbox_engine::plan::Interrupt;
use toolbox_engine::{Clock, Exit, Redactor, Report, Why};

use super::app::{App, Refusal};
use super::args::Color;
use super::display::{Heard, Paint, Surface};
use super::own::Own;
use super::parse::{Asked, Ended, parse};
use super::run::{Context, Stage, verb};
use super::signals::Signals;
use super::undo::clean_up;
use super::wrong_flag;
use crate::EnvMap;

/// Where a command line is run.
pub struct Embedded<'a> {
    /// The program.
    pub app: &'a App,
    /// The environment.
    pub env: &'a EnvMap,
    /// The cluster; options that choose one have no effect.
    pub cluster: Cluster,
    /// Its time.
    pub clock: Clock,
    /// How the run is asked to stop, in place of signals.
    pub interrupt: Interrupt,
}

/// How it ended.
#[derive(Debug)]
pub struct EmbeddedEnd {
    /// The exit code's meaning.
    pub exit: Exit,
    /// What a program would print on stdout.
    pub answer: Option<Report>,
    /// The failure.
    pub why: Option<Why>,
    /// What a program would write to stderr.
    pub said: String,
    /// Where its files are.
    pub run_dir: Option<PathBuf>,
}

impl Embedded<'_> {
    /// Runs a verb, or `cleanup`, as the program would: checks, lease, run directory, undo, end. `words` starts with the
    /// program's name. Dropping the future is what `kill -9` is to the program.
    pub async fn run(self, words: &[&str]) -> EmbeddedEnd {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let parsed = match parse(self.app, &words, self.env, Path::new("/")) {
            Ok(parsed) => parsed,
            Err(Ended::Why(why)) => return refused(why),
            Err(Ended::Clap(error) | Ended::Unknown(_, error)) => return refused(not_words(&error)),
        };
        let wanted = match &parsed.asked {
            Asked::Verb(matches) => match self.app.verb(matches) {
                Some(Ok(verb)) => Ok(verb),
                Some(Err(Refusal::Why(why))) => Err(why),
                Some(Err(Refusal::Clap(error))) => Err(not_words(&error)),
                None => Err(wrong_flag("VERB", "no verb is named", "name one")),
            },
            Asked::Own(Own::Cleanup(args)) => clean_up(&args.run_dir),
            Asked::Rehearse(..) | Asked::Own(_) => {
                Err(wrong_flag("VERB", "is none that runs on a cluster", "name a verb, or cleanup"))
            }
        };
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(why) => return refused(why),
        };
        let heard = Heard::default();
        let redactor = Redactor::new();
        for setting in parsed.settings.iter().filter(|setting| setting.secret) {
            for value in &setting.values {
                redactor.register(value);
            }
        }
        let context = Context {
            program: self.app.name(),
            globals: &parsed.globals,
            settings: &parsed.settings,
            env: self.env,
            words: words.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect(),
            notes: &parsed.notes,
            paint: Paint::detect(Color::Never, self.env),
            surface: Surface::Lines,
            heard: Some(heard.clone()),
        };
        let stage = Stage { clock: self.clock, rehearsal: None };
        let mut signals = Signals::default();
        signals.interrupt = self.interrupt;
        let cluster = self.cluster;
        let finished = verb(&context, &stage, &signals, wanted, &redactor, async { Ok(cluster) }).await;
        EmbeddedEnd {
            exit: finished.exit,
            answer: finished.answer,
            why: finished.why,
            run_dir: finished.run_dir,
            said: heard.text(),
        }
    }
}

fn refused(why: Why) -> EmbeddedEnd {
    EmbeddedEnd { exit: why.exit, answer: None, said: why.to_string(), why: Some(why), run_dir: None }
}

fn not_words(error: &clap::Error) -> Why {
    wrong_flag("WORDS", error.to_string(), "see --help")
}
