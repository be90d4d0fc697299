//! Commands of the program itself: they look at runs and settings instead of testing anything.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;
use toolbox_engine::plan::parse_duration;

/// Options of `rehearse`, before the verb.
#[derive(Args, Clone, Debug)]
pub(crate) struct RehearseArgs {
    /// Scenario file, or the name of one that comes with the program [default: default]. Without a VERB, what the
    /// scenario itself names is run
    #[arg(long, value_name = "FILE|NAME")]
    pub(crate) scenario: Option<String>,

    /// Something that goes wrong; repeatable
    #[arg(long = "fault", value_name = "NAME")]
    pub(crate) faults: Vec<String>,

    /// The same seed gives the same run, byte for byte [default: the scenario's, or 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Serve the cluster over HTTPS on loopback instead, for kubectl and other programs; until Ctrl-C, or as long as
    /// the COMMAND after `--` runs
    #[arg(long)]
    pub(crate) serve: bool,

    /// With --serve: how much faster than real time the cluster lives
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = speed)]
    pub(crate) speed: f64,

    /// With --serve: the port; 0 is a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// Watch a real cluster instead, change nothing, and write a scenario that shows the same
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scenario", "faults", "serve", "seed"])]
    pub(crate) record: Option<PathBuf>,

    /// With --record: a namespace whose objects are recorded; repeatable [default: all but the platform's]
    #[arg(long = "namespace", value_name = "NS", requires = "record")]
    pub(crate) namespaces: Vec<String>,

    /// With --record: how long; Ctrl-C ends it earlier
    #[arg(long = "for", value_name = "DURATION", default_value = "10m", value_parser = parse_duration)]
    pub(crate) time: std::time::Duration,

    /// List the faults and what they do
    #[arg(long)]
    pub(crate) list_faults: bool,

    /// List the scenarios that come with the program
    #[arg(long)]
    pub(crate) list_scenarios: bool,

    /// With --serve: what to run against the cluster, with KUBECONFIG set
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl RehearseArgs {
    /// The scenario's file or name.
    pub(crate) fn scenario(&self) -> &str {
        self.scenario.as_deref().unwrap_or("default")
    }
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        _ if text == "max" => {
            Err("time cannot jump for clients outside, whose own waits and time-outs pass in real time: \
                                   write a number between 0.01 and 10000"
                .to_owned())
        }
        Ok(speed) if speed.is_finite() && (0.01..=10_000.0).contains(&speed) => Ok(speed),
        _ => Err("write a number between 0.01 and 10000".to_owned()),
    }
}

/// The object that `why` is asked about.
#[derive(Args, Clone, Debug)]
pub(crate) struct WhyArgs {
    /// The object, such as pod/x, daemonset/nvidia-driver-daemonset or csv/nfd.v4.11.0
    #[arg(value_name = "KIND/NAME")]
    pub(crate) object: String,

    /// Its namespace [default: the context's]
    #[arg(long, short, value_parser = super::args::namespace)]
    pub(crate) namespace: Option<String>,
}

/// The runs that `report` renders.
#[derive(Args, Clone, Debug)]
pub(crate) struct ReportArgs {
    /// Directory of the run
    pub(crate) run_dir: PathBuf,

    /// A second run, to see side by side what differs
    pub(crate) other: Option<PathBuf>,
}

/// The run that `cleanup` takes back.
#[derive(Args, Clone, Debug)]
pub(crate) struct CleanupArgs {
    /// Directory of the run
    pub(crate) run_dir: PathBuf,
}

/// The shell that completions are for.
#[derive(Args, Clone, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Where the manual pages go.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManArgs {
    /// Directory for the pages
    pub(crate) dir: PathBuf,
}

/// The commands besides the verbs and `rehearse`.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Own {
    /// Say what holds an object up, on the live cluster
    Why(WhyArgs),
    /// Render a run's report again, or compare two runs
    Report(ReportArgs),
    /// Take back exactly what a run made and changed, by uid
    Cleanup(CleanupArgs),
    /// Print every setting, its value and where it came from
    Config,
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Write the manual pages
    Man(ManArgs),
}
