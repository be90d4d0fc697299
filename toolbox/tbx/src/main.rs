//! `tbx`: every verb in one program.

use std::process::ExitCode;

use testing_prow::{ProwCommand, RunArgs};
use tool_cluster::ClusterCommand;
use tool_gpu_operator::GpuOperatorCommand;
use tool_nfd::NfdCommand;
use toolbox_core::App;

fn main() -> ExitCode {
    let app = App::new("tbx")
        .noun::<ClusterCommand>("cluster", &[])
        .noun::<NfdCommand>("nfd", &["nfd-operator"])
        .noun::<GpuOperatorCommand>("gpu-operator", &[])
        .noun::<ProwCommand>("prow", &[])
        .lone::<RunArgs>("run", &[]);
    toolbox_core::cli::main(app)
}
