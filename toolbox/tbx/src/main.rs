//! `tbx`: every verb in one program.

use std::process::ExitCode;

use toolbox_core::App;

fn main() -> ExitCode {
    toolbox_core::cli::main(App::new("tbx"))
}
