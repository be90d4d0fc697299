//! The steps that install, instantiate and remove an operator, shared by every tool that needs one.

mod access;
mod install;
mod instance;
mod package;
mod progress;
mod reach;
mod removal;
mod spec;
mod target;
mod uninstall;

pub use install::{Installed, install};
pub use instance::{Change, InstanceSpec, create, instance, kind_is_served};
pub use removal::Found;
pub use spec::{Approval, InstallSpec};
pub use target::{Action, Target};
pub use uninstall::{UninstallSpec, Uninstalled, uninstall};

#[cfg(test)]
mod tests;
