//! The command line: everything that prints, exits, or reads arguments and the environment.

mod app;
mod args;
mod artifacts;
mod binding;
mod display;
mod lease;
mod own;
mod parse;
mod signals;
mod spelling;
mod verb;

use std::process::ExitCode;

pub use app::App;
pub use verb::{FloorJob, Lone, Noun, Verb, VerbEnv, VerbName};

use app::Refusal;
use toolbox_engine::Exit;

/// Runs a program.
pub fn main(app: App) -> ExitCode {
    let parsed = app.command().try_get_matches();
    let exit = match parsed {
        Ok(matches) => match app.verb(&matches) {
            Some(Ok(_)) | None => Exit::Done,
            Some(Err(Refusal::Why(why))) => why.exit,
            Some(Err(Refusal::Clap(error))) => usage(&error),
        },
        Err(error) => usage(&error),
    };
    ExitCode::from(exit.code())
}

fn usage(error: &clap::Error) -> Exit {
    let wrong = error.use_stderr();
    // Nobody is left to tell when even this cannot be printed.
    let _ = error.print();
    if wrong { Exit::Usage } else { Exit::Done }
}
