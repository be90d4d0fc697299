//! What `rehearse` does: run a verb, serve, list, record.

use std::ffi::OsString;
use std::path::Path;

use clap::ArgMatches;
use toolbox_cluster::Cluster;
use toolbox_engine::{Clock, Exit, Redactor};

use super::{Program, clap_message, complain, printed, runtime};
use crate::cli::own::RehearseArgs;
use crate::cli::parse::{Asked, Ended, parse};
use crate::cli::signals::Signals;
use crate::cli::{connect, expected, output, record, rehearse, serve, wrong_flag};
use crate::config::ConfigError;

impl Program<'_> {
    pub(super) fn rehearse(&self, args: &RehearseArgs, matches: Option<&ArgMatches>, redactor: &Redactor) -> Exit {
        if let Some(list) = rehearse::lists(args) {
            return printed(output::print(&output::form(&list, self.globals().output)));
        }
        if let Some(file) = &args.record {
            if matches.is_some() || !args.command.is_empty() {
                let next = "leave the verb out: what happens on the cluster is recorded, whoever does it";
                return complain(&wrong_flag("--record", "a recording runs no verb", next), self.paint());
            }
            return self.record(args, file, redactor);
        }
        if args.serve || !args.command.is_empty() {
            let (text, next) = if args.serve {
                (
                    "a cluster that is served runs no verb itself",
                    "run the verb from another shell, or name it as a COMMAND after `--`",
                )
            } else {
                ("a command needs a cluster that is served", "add --serve before `--`")
            };
            return complain(&wrong_flag("--serve", text, next), self.paint());
        }
        let Some(matches) = matches else { return self.by_scenario(args, redactor) };
        let verbs = match (self.verb(matches), self.verb(matches)) {
            (Ok(verb), Ok(twin)) => (verb, twin),
            (Err(exit), _) | (_, Err(exit)) => return exit,
        };
        let scenario = match rehearse::scenario(args) {
            Ok(scenario) => scenario,
            Err(why) => return complain(&why, self.paint()),
        };
        let expect = scenario.expect.clone().filter(|expect| self.scripted || expect.command.is_empty());
        let context = self.context(true);
        let finished = match runtime(true) {
            Ok(runtime) => runtime.block_on(rehearse::rehearse(&context, args, scenario, verbs, redactor)),
            Err(exit) => return exit,
        };
        let judged = expect.and_then(|expect| expected::judge(args.scenario(), &expect, &finished, redactor));
        let exit = self.answer(finished, redactor);
        match judged {
            None => exit,
            Some(Ok(line)) => {
                output::complain(&line);
                Exit::Done
            }
            Some(Err(why)) => complain(&why, self.paint()),
        }
    }

    fn record(&self, args: &RehearseArgs, file: &Path, redactor: &Redactor) -> Exit {
        let options = connect::options(self.globals(), &self.parsed.settings, self.env);
        connect::hide_credentials(&options, redactor);
        let request = record::Request { file, namespaces: &args.namespaces, time: args.time };
        let recorded = match runtime(false) {
            Ok(runtime) => runtime.block_on(async {
                let clock = Clock::real();
                let signals = Signals::default();
                let recording = async {
                    let cluster = Cluster::connect(&options, clock.clone()).await?;
                    for line in connect::describe(cluster.info()) {
                        output::complain(&line);
                    }
                    output::complain(&format!("recording for {} s, or until Ctrl-C", args.time.as_secs()));
                    record::record(&cluster, &clock, &request, &signals.stopped, redactor).await
                };
                tokio::select! {
                    biased;
                    () = signals.listen() => Err(ConfigError::file("signals", "cannot be heard").into()),
                    recorded = recording => recorded,
                }
            }),
            Err(exit) => return exit,
        };
        match recorded {
            Ok(report) => printed(output::print(&output::form(&report, self.globals().output))),
            Err(why) => complain(&why, self.paint()),
        }
    }

    /// No verb was named: the scenario may name one itself.
    fn by_scenario(&self, args: &RehearseArgs, redactor: &Redactor) -> Exit {
        let next = format!("see {} rehearse --help", self.app.name());
        if args.scenario.is_none() {
            return complain(&wrong_flag("VERB", "a rehearsal needs a verb", next), self.paint());
        }
        let command = match rehearse::scenario(args) {
            Ok(scenario) => scenario.expect.unwrap_or_default().command,
            Err(why) => return complain(&why, self.paint()),
        };
        if command.is_empty() {
            let problem = "a rehearsal needs a verb, and the scenario names none (expect.command)";
            return complain(&wrong_flag("VERB", problem, next), self.paint());
        }
        let words: Vec<OsString> = self.words.iter().cloned().chain(command.iter().map(OsString::from)).collect();
        let here = std::env::current_dir().unwrap_or_default();
        let parsed = match parse(self.app, &words, self.env, &here) {
            Ok(parsed) => parsed,
            Err(Ended::Why(why)) => return complain(&why, self.paint()),
            Err(Ended::Clap(error) | Ended::Unknown(_, error)) => return clap_message(self.app, &words, &error),
        };
        let Asked::Rehearse(args, Some(matches)) = &parsed.asked else {
            let problem = format!("`{}` is no verb", command.join(" "));
            let error = ConfigError::file(args.scenario(), problem).at("expect.command", None);
            return complain(&error.into(), self.paint());
        };
        let (args, matches) = (args.clone(), matches.clone());
        let program = Program { app: self.app, words: &words, env: self.env, parsed, scripted: true };
        program.rehearse(&args, Some(&matches), redactor)
    }

    pub(super) fn serve(&self, args: &RehearseArgs) -> u8 {
        let served = rehearse::scenario(args).and_then(|scenario| match runtime(false) {
            Ok(runtime) => runtime.block_on(serve::serve_it(args, scenario, self.env)),
            Err(_) => Err(ConfigError::file("runtime", "cannot be started").into()),
        });
        served.unwrap_or_else(|why| complain(&why, self.paint()).code())
    }
}
