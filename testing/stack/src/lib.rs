//! The real stack: a control plane and operators that are the real programs, run as processes on this machine.
//!
//! No container engine, no image, no cluster. etcd, the API server and its controllers, OLM with its catalogs,
//! NFD, the MachineSet controller and the GPU Operator are built from Go modules (`go/`), once per machine, and
//! started in namespaces of their own (network, processes, mounts): fixed ports clash with nobody, and when the
//! first process inside ends, everything does. kwok plays the nodes. What only a cloud or hardware can do is
//! played here by ordinary clients of the API server: machines become nodes, programs run while their pod does,
//! a device plugin reports a GPU, gpu-burn prints what it prints.
//!
//! The GPU Operator's program is 1.11.1, whichever 1.11 bundle is installed. For older bundles no program runs:
//! their CSV succeeds and their ClusterPolicy can be made, and nothing reconciles it.
//!
//! Kubernetes is 1.24.17 or 1.34.4 ([`Version`]); the GPU Operator runs on the first only. With
//! [`Extent::ControlPlane`] there is Kubernetes, kwok and nothing else.
//!
//! From a shell: `cargo xtask stack up`, `eval "$(cargo xtask stack env)"`, `cargo xtask stack down`. From a test:
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use testing_stack::{Fault, Options, Stack};
//!
//! let stack = Stack::up(Options::test("burn")).await?;
//! stack.break_(Fault::GpuFaulty).await?;
//! let kubeconfig = stack.kubeconfig();
//! # Ok(()) }
//! ```
//!
//! The stack's own test is behind the feature `real-stack`, which `cargo xtask test` sets and
//! `cargo xtask test --quick` does not. Nothing of the product but tests may depend on this crate.

mod build;
mod catalog;
mod client;
mod control;
mod crilog;
mod keeper;
mod paths;
mod process;
mod stack;
mod standin;
mod state;
mod supervise;
mod yaml;

pub use build::{Extent, Version};
pub use control::{Fault, PartStatus, Phase, Status};
pub use stack::{Options, Stack};
pub use supervise::{Supervise, supervise};
