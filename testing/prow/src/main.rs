//! The CI's jobs, without the noun in front.

use std::process::ExitCode;

use testing_prow::ProwCommand;
use toolbox_core::cli::{self, App};

fn main() -> ExitCode {
    cli::main(App::new("tbx-prow").only::<ProwCommand>("prow"))
}
