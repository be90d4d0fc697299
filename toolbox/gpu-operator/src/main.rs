//! The GPU Operator's verbs, without the noun in front.

use std::process::ExitCode;

use tool_gpu_operator::GpuOperatorCommand;
use toolbox_core::cli::{self, App};

fn main() -> ExitCode {
    cli::main(App::new("tbx-gpu-operator").only::<GpuOperatorCommand>("gpu-operator"))
}
