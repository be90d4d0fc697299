//! The cluster's verbs, without the noun in front.

use std::process::ExitCode;

use tool_cluster::ClusterCommand;
use toolbox_core::cli::{self, App};

fn main() -> ExitCode {
    cli::main(App::new("tbx-cluster").only::<ClusterCommand>("cluster"))
}
