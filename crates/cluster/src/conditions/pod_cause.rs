//! What can be wrong with a pod.

use toolbox_engine::{Cause, FailureVerdict};

/// Why a pod does not run, or has not run well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodCause {
    /// An image cannot be pulled.
    ImagePull {
        /// The container.
        container: String,
        /// The image.
        image: String,
        /// The most exact words that were seen for it.
        message: String,
    },
    /// The name of an image is not legal, or the image must be there and is not.
    ImageName {
        /// The container.
        container: String,
        /// The image.
        image: String,
        /// The kubelet's words.
        message: String,
    },
    /// A container cannot be made: a secret, a config map, a command that is not there.
    ContainerConfig {
        /// The container.
        container: String,
        /// `CreateContainerConfigError`.
        reason: String,
        /// The kubelet's words.
        message: String,
    },
    /// A container starts and ends, again and again.
    CrashLoop {
        /// The container.
        container: String,
        /// Whether it is one that has to end well before the others start.
        init: bool,
        /// How often it was started again.
        restarts: i64,
        /// How it ended last: `exit code 1`, `OOMKilled`.
        last: String,
    },
    /// No node takes the pod.
    Unschedulable {
        /// The scheduler's words.
        message: String,
    },
    /// The kubelet cannot get as far as starting it: volumes, network.
    NotStarted {
        /// The latest warning.
        message: String,
    },
    /// The pod was put out by its node.
    Evicted {
        /// The kubelet's words.
        message: String,
    },
    /// The pod has ended badly.
    Failed {
        /// The container, when one of them is to blame.
        container: Option<String>,
        /// How: `exit code 1`, `DeadlineExceeded`.
        how: String,
    },
}

/// ` (init container)` or nothing.
fn kind_of(init: bool) -> &'static str {
    if init { "init container" } else { "container" }
}

impl Cause for PodCause {
    fn code(&self) -> &'static str {
        match self {
            PodCause::ImagePull { .. } => "image-pull-failure",
            PodCause::ImageName { .. } => "image-name",
            PodCause::ContainerConfig { .. } => "container-config",
            PodCause::CrashLoop { init: false, .. } => "crash-loop",
            PodCause::CrashLoop { init: true, .. } => "init-container-failure",
            PodCause::Unschedulable { .. } => "unschedulable",
            PodCause::NotStarted { .. } => "pod-not-started",
            PodCause::Evicted { .. } => "pod-evicted",
            PodCause::Failed { .. } => "pod-failed",
        }
    }

    fn text(&self) -> String {
        match self {
            PodCause::ImagePull { container, image, message } => {
                format!("image {image} of container {container} cannot be pulled: {message}")
            }
            PodCause::ImageName { container, image, message } => {
                format!("image {image} of container {container} cannot be used: {message}")
            }
            PodCause::ContainerConfig { container, reason, message } => {
                format!("container {container} cannot be made: {reason}: {message}")
            }
            PodCause::CrashLoop { container, init, restarts, last } => {
                let times = if *restarts == 1 { "once".to_owned() } else { format!("{restarts} times") };
                match restarts {
                    0 => format!("{} {container} ended with {last}", kind_of(*init)),
                    _ => format!("{} {container} was started again {times} and ended with {last}", kind_of(*init)),
                }
            }
            PodCause::Unschedulable { message } => format!("no node takes it: {message}"),
            PodCause::NotStarted { message } => format!("is not started: {message}"),
            PodCause::Evicted { message } => format!("was evicted: {message}"),
            PodCause::Failed { container: Some(container), how } => format!("container {container} ended with {how}"),
            PodCause::Failed { container: None, how } => format!("has failed: {how}"),
        }
    }

    fn next(&self) -> String {
        match self {
            PodCause::ImagePull { .. } => {
                "check that the image exists, that the node reaches its registry, and that the pull secret covers it"
            }
            PodCause::ImageName { .. } => "correct the image's name",
            PodCause::ContainerConfig { .. } => "make what the container refers to, or correct the reference",
            PodCause::CrashLoop { .. } => "read the log of the container's previous run",
            PodCause::Unschedulable { .. } => {
                "compare what the pod asks for with what the nodes have: resources, labels, taints"
            }
            PodCause::NotStarted { .. } => "look at the pod's events and at its node",
            PodCause::Evicted { .. } => "free the node of what ran out, and run the command again",
            PodCause::Failed { .. } => "read the container's log",
        }
        .to_owned()
    }

    fn verdict(&self) -> FailureVerdict {
        match self {
            PodCause::CrashLoop { .. } | PodCause::Failed { .. } => FailureVerdict::Product,
            PodCause::ImageName { .. } | PodCause::ContainerConfig { .. } => FailureVerdict::Configuration,
            PodCause::ImagePull { .. } | PodCause::NotStarted { .. } | PodCause::Evicted { .. } => {
                FailureVerdict::Infrastructure
            }
            PodCause::Unschedulable { .. } => FailureVerdict::Capacity,
        }
    }
}
