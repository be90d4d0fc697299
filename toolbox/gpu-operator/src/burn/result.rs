//! What the burn program's log says about each GPU. The program's exit status is not believed: it is 0 for faulty cards.

use std::collections::BTreeMap;

use toolbox_core::engine::{Cause, FailureVerdict};

/// What became of the GPUs of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BurnLog {
    /// The number in `Tested N GPUs`.
    pub(crate) tested: Option<u32>,
    /// By index: OK or not.
    pub(crate) gpus: BTreeMap<u32, bool>,
}

/// Why a burn is no pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BurnCause {
    /// These GPUs computed wrong results.
    Faulty { faulty: Vec<u32>, tested: usize },
    /// The log ends before the result.
    NoResult { exit_code: Option<i64> },
    /// The node offers more GPUs than were tested.
    Fewer { tested: u32, expected: u32 },
    /// There is no log to read a result from.
    NoLog { problem: String },
    /// A pod of somebody else has the burn pod's name.
    NotOurs,
    /// The pod did not get to its end.
    Evicted { message: String },
    /// The pod was deleted by somebody else, or went with its node.
    Disappeared,
    /// The scheduler has no room for it.
    Unschedulable { message: String },
    /// The node has no GPU to burn.
    NothingAllocatable,
    /// No node is a GPU node.
    NoGpuNode,
}

impl Cause for BurnCause {
    fn code(&self) -> &'static str {
        match self {
            BurnCause::Faulty { .. } => "gpu-faulty",
            BurnCause::NoResult { .. } => "burn-without-result",
            BurnCause::Fewer { .. } => "burn-missed-gpus",
            BurnCause::NoLog { .. } => "burn-log-missing",
            BurnCause::NotOurs => "foreign-pod",
            BurnCause::Evicted { .. } => "burn-pod-evicted",
            BurnCause::Disappeared => "burn-pod-disappeared",
            BurnCause::Unschedulable { .. } => "burn-pod-unschedulable",
            BurnCause::NothingAllocatable => "no-allocatable-gpu",
            BurnCause::NoGpuNode => "no-gpu-node",
        }
    }

    fn text(&self) -> String {
        match self {
            BurnCause::Faulty { faulty, tested } => {
                let list: Vec<String> = faulty.iter().map(|gpu| format!("GPU {gpu}")).collect();
                let verb = if faulty.len() == 1 { "is" } else { "are" };
                format!("{} of {tested} tested {verb} FAULTY", list.join(" and "))
            }
            BurnCause::NoResult { exit_code } => match exit_code {
                Some(0) | None => "the burn ended without a result in its log".to_owned(),
                Some(code) => format!("the burn ended without a result, exit status {code}{}", exit_meaning(*code)),
            },
            BurnCause::Fewer { tested, expected } => {
                format!("only {tested} of the node's {expected} GPUs were tested")
            }
            BurnCause::NoLog { problem } => {
                format!("the burn's log cannot be read, so nothing proves its GPUs good: {problem}")
            }
            BurnCause::NotOurs => "is no burn pod and has the name of one".to_owned(),
            BurnCause::Evicted { message } => format!("the burn pod was evicted: {message}"),
            BurnCause::Disappeared => "the burn pod was deleted before it ended, or went with its node".to_owned(),
            BurnCause::Unschedulable { message } => {
                format!("the burn pod cannot be scheduled: {message}")
            }
            BurnCause::NothingAllocatable => "is a GPU node but offers no nvidia.com/gpu to pods".to_owned(),
            BurnCause::NoGpuNode => "no GPU node: no node has nvidia.com/gpu.present=true".to_owned(),
        }
    }

    fn next(&self) -> String {
        match self {
            BurnCause::Faulty { .. } => {
                "replace the node (delete its Machine) and look for Xid errors in its kernel log"
            }
            BurnCause::NoResult { .. } => "read the burn's log in the run directory",
            BurnCause::Fewer { .. } => "compare nvidia-smi on the node with what the device plugin announces",
            BurnCause::NoLog { .. } => "run the burn again; if that fails too, look at the node's kubelet",
            BurnCause::NotOurs => "delete or rename it, then run the burn again",
            BurnCause::Evicted { .. } => "free the node of what presses it, then run the burn again",
            BurnCause::Disappeared => "see who deletes pods or nodes in this cluster, then run the burn again",
            BurnCause::Unschedulable { .. } => "see which pods use the node's GPUs, then run the burn again",
            BurnCause::NothingAllocatable | BurnCause::NoGpuNode => {
                "run gpu-operator wait-deployment, which says what is missing"
            }
        }
        .to_owned()
    }

    fn verdict(&self) -> FailureVerdict {
        match self {
            BurnCause::Faulty { .. }
            | BurnCause::NoLog { .. }
            | BurnCause::Evicted { .. }
            | BurnCause::Disappeared
            | BurnCause::Unschedulable { .. } => FailureVerdict::Infrastructure,
            BurnCause::NoResult { .. } | BurnCause::Fewer { .. } | BurnCause::NothingAllocatable => {
                FailureVerdict::Product
            }
            BurnCause::NoGpuNode | BurnCause::NotOurs => FailureVerdict::Configuration,
        }
    }
}

fn exit_meaning(code: i64) -> &'static str {
    match code {
        111 => " (a computation failed)",
        123 => " (no test process is alive)",
        124 => " (the GPUs could not be initialised)",
        125 => " (the image has neither gpu_burn nor nvcc)",
        137 => " (killed, usually for want of memory)",
        _ => "",
    }
}

/// Reads the log of a burn.
pub(crate) fn parse(log: &str) -> BurnLog {
    let mut found = BurnLog::default();
    for line in log.lines() {
        // Progress overwrites itself with carriage returns; only what is left on the line counts.
        let line = line.rsplit('\r').find(|part| !part.trim().is_empty());
        let line = line.unwrap_or_default().trim();
        if let Some(rest) = line.strip_prefix("Tested ") {
            let count = rest.split_whitespace().next();
            if let Some(count) = count.and_then(|count| count.parse().ok()) {
                found.tested = Some(count);
                found.gpus.clear();
            }
        } else if found.tested.is_some()
            && let Some((index, state)) = line.strip_prefix("GPU ").and_then(|rest| rest.split_once(':'))
            && let Ok(index) = index.trim().parse()
        {
            found.gpus.insert(index, state.trim() == "OK");
        }
    }
    found
}

/// What the log means for a node with `expected` GPUs: how many are good, or why it is no pass.
pub(crate) fn judge(log: &str, expected: u32, exit_code: Option<i64>) -> Result<u32, BurnCause> {
    let found = parse(log);
    let faulty: Vec<u32> = found.gpus.iter().filter(|(_, good)| !**good).map(|(index, _)| *index).collect();
    if !faulty.is_empty() {
        return Err(BurnCause::Faulty { faulty, tested: found.gpus.len() });
    }
    let Some(tested) = found.tested else {
        return Err(BurnCause::NoResult { exit_code });
    };
    let good = u32::try_from(found.gpus.len()).unwrap_or(u32::MAX);
    if good < tested || exit_code.is_some_and(|code| code != 0) {
        return Err(BurnCause::NoResult { exit_code });
    }
    if tested < expected {
        return Err(BurnCause::Fewer { tested, expected });
    }
    Ok(tested)
}

/// The log as it looks on a terminal once everything that overwrote itself is gone.
pub(crate) fn settled(log: &str) -> String {
    let mut text = String::with_capacity(log.len().min(64 * 1024));
    for line in log.lines() {
        let last = line.rsplit('\r').find(|part| !part.trim().is_empty());
        text.push_str(last.unwrap_or_default().trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "GPU 0: Tesla T4 (UUID: GPU-1)\n10.0%  proc'd: 10 (3000 Gflop/s)\r100.0%  proc'd: 99\r\nKilling processes.. done\n\nTested 1 GPUs:\n\tGPU 0: OK\n";

    #[test]
    fn a_good_log_counts_its_gpus() {
        assert_eq!(judge(GOOD, 1, Some(0)), Ok(1));
    }

    #[test]
    fn a_faulty_gpu_is_found_although_the_program_ends_with_0() {
        let log = "Tested 2 GPUs:\n\tGPU 0: FAULTY\n\tGPU 1: OK\n";
        let cause = judge(log, 2, Some(0)).unwrap_err();
        assert_eq!(cause.text(), "GPU 0 of 2 tested is FAULTY");
        assert_eq!(cause.code(), "gpu-faulty");
    }

    #[test]
    fn no_result_is_no_pass() {
        for (log, code) in [
            ("", Some(0)),
            ("10.0%  proc'd: 10\r", Some(0)),
            ("Tested 2 GPUs:\n\tGPU 0: OK\n", Some(0)),
            (GOOD, Some(137)),
            ("no CUDA device\n", Some(124)),
        ] {
            let cause = judge(log, 1, code).unwrap_err();
            assert_eq!(cause, BurnCause::NoResult { exit_code: code }, "{log}");
        }
    }

    #[test]
    fn every_gpu_of_the_node_must_have_been_tested() {
        assert_eq!(judge(GOOD, 4, Some(0)), Err(BurnCause::Fewer { tested: 1, expected: 4 }));
    }

    #[test]
    fn a_progress_line_that_overwrites_itself_leaves_its_last_state() {
        assert_eq!(settled("a 1%\ra 50%\ra 100%\r\nend\n"), "a 100%\nend\n");
    }
}
