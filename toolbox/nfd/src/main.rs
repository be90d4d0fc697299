//! NFD's verbs, without the noun in front.

use std::process::ExitCode;

use tool_nfd::NfdCommand;
use toolbox_core::cli::{self, App};

fn main() -> ExitCode {
    cli::main(App::new("tbx-nfd").only::<NfdCommand>("nfd"))
}
