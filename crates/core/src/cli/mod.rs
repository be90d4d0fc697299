//! The command line: everything that prints, exits, or reads arguments and the environment.

mod app;
mod args;
mod artifacts;
mod binding;
mod checks;
mod compare;
mod connect;
mod display;
mod embed;
mod expected;
mod external;
mod identity;
mod lease;
mod log;
mod main;
mod output;
mod own;
mod panics;
mod parse;
mod preview;
mod record;
mod rehearse;
mod run;
mod serve;
mod settings_view;
mod signals;
mod spelling;
mod undo;
mod verb;
mod why;

/// The JSON schema of scenario files.
pub fn scenario_schema() -> serde_json::Value {
    toolbox_rehearsal::scenario::schema()
}

pub use app::App;
pub use args::namespace;
pub use checks::wrong_flag;
pub use embed::{Embedded, EmbeddedEnd};
pub use main::main;
/// The whole command line of a program, as its help shows it: for documentation and for whatever is generated from the
/// verbs.
pub fn command(app: &App) -> clap::Command {
    parse::shown(app)
}

pub use verb::{FloorJob, FlowPart, Lone, Noun, Verb, VerbEnv, VerbName};
