//! Measurements as ratios and counts, never as seconds to compare with: start-up against `/bin/true`, binary sizes,
//! API requests against what polling would need, peak memory, virtual against wall time.

mod polling;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::cargo;

/// How often a start-up is timed; the median counts.
const STARTS: usize = 41;

/// The largest `tbx` that is fine, in bytes.
const SIZE_GOAL: u64 = 15 * 1024 * 1024;

/// The packages of what is shipped.
const PACKAGES: [&str; 5] = ["tbx", "tool-cluster", "tool-nfd", "tool-gpu-operator", "testing-prow"];

const BINARIES: [&str; 5] = ["tbx", "tbx-cluster", "tbx-nfd", "tbx-gpu-operator", "tbx-prow"];

pub(crate) fn run() -> Result<()> {
    // Only what is shipped: a link of each takes its time.
    let mut build = vec!["build", "--release", "--bins", "--locked"];
    build.extend(PACKAGES.iter().flat_map(|package| ["--package", package]));
    cargo::cargo(&build)?;
    let tbx = binary("tbx");
    start_up(&tbx)?;
    sizes()?;
    flow(&tbx)
}

fn binary(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| cargo::root().join("target"), PathBuf::from);
    target.join("release").join(name)
}

fn start_up(tbx: &Path) -> Result<()> {
    let ours = median_start(tbx, &["--version"])?;
    let least = median_start(Path::new("/bin/true"), &[])?;
    show("start-up of `tbx --version` against /bin/true", format!("{:.1} times", ours / least));
    Ok(())
}

/// Seconds.
fn median_start(program: &Path, arguments: &[&str]) -> Result<f64> {
    let mut seconds = Vec::new();
    for _ in 0..STARTS {
        let start = Instant::now();
        let status = Command::new(program).args(arguments).stdout(Stdio::null()).status();
        let status = status.with_context(|| format!("cannot start {}", program.display()))?;
        ensure!(status.success(), "{} ended with {status}", program.display());
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[STARTS / 2])
}

fn sizes() -> Result<()> {
    for name in BINARIES {
        let path = binary(name);
        let size = std::fs::metadata(&path).with_context(|| format!("no {}", path.display()))?.len();
        show(&format!("size of {name}"), format!("{:.1} MB, loads {}", size as f64 / 1_048_576.0, libraries(&path)?));
        ensure!(name != "tbx" || size <= SIZE_GOAL, "tbx has {size} bytes, the goal is {SIZE_GOAL}");
    }
    Ok(())
}

/// The shared libraries a program loads.
fn libraries(path: &Path) -> Result<String> {
    let listed = cargo::output("ldd", &[path.to_str().context("the target directory's name is not UTF-8")?])?;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let names = names.into_iter().filter_map(|name| name.rsplit('/').next());
    Ok(names.filter(|name| !name.starts_with("linux-vdso")).collect::<Vec<_>>().join(" "))
}

/// The main job in the rehearsal.
fn flow(tbx: &Path) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let artifacts = directory.path().to_str().context("the temp directory's name is not UTF-8")?;
    let start = Instant::now();
    let mut child = Command::new(tbx)
        .args(["--artifact-dir", artifacts, "rehearse", "prow", "gpu-operator", "test_operatorhub"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let peak = peak_memory(&mut child)?;
    let wall = start.elapsed().as_secs_f64();
    let summary = std::fs::read(directory.path().join("summary.json")).context("the run left no summary.json")?;
    let summary: Value = serde_json::from_slice(&summary)?;
    let makespan = summary["makespan_s"].as_f64().context("summary.json has no makespan_s")?;
    let floor = summary["floor_s"].as_f64().context("summary.json has no floor_s")?;
    let requests: u64 = summary["requests"]
        .as_object()
        .context("summary.json has no requests")?
        .values()
        .filter_map(Value::as_u64)
        .sum();
    let polling = polling::requests(&summary);
    show("virtual against wall time of the main job", format!("{:.0} times", makespan / wall));
    show("makespan against the scenario's floor", format!("{:.3} times", makespan / floor));
    show(
        "API requests against polling at the predecessor's intervals",
        format!("{requests} against {polling} ({:.1} times fewer)", polling as f64 / requests as f64),
    );
    show("peak memory of the main job", format!("{:.0} MB", peak as f64 / 1024.0));
    Ok(())
}

/// The most memory a child had, in KiB, read while it runs.
fn peak_memory(child: &mut std::process::Child) -> Result<u64> {
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Ok(status) = std::fs::read_to_string(&status_file) {
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok());
            peak = peak.max(kib.unwrap_or(0));
        }
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "the main job failed in the rehearsal: {status}");
            return Ok(peak);
        }
        std::thread::yield_now();
    }
}

#[expect(clippy::print_stdout, reason = "the measurements are this command's result")]
fn show(what: &str, value: String) {
    println!("{what}: {value}");
}
