//! The developers' log, on stderr.

use toolbox_engine::Redactor;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::args::{GlobalArgs, LogFormat};

/// Starts it, when it is asked for. Secrets that `redactor` knows are masked.
pub(crate) fn start(globals: &GlobalArgs, redactor: &Redactor) -> Result<(), String> {
    let filter = match (&globals.log_filter, globals.verbose) {
        (Some(filter), _) => filter.clone(),
        (None, 0) => return Ok(()),
        (None, 1) => "toolbox_core=debug,toolbox_cluster=debug,toolbox_engine=debug".to_owned(),
        (None, 2) => "debug".to_owned(),
        (None, _) => "trace".to_owned(),
    };
    let filter = EnvFilter::try_new(&filter).map_err(|error| format!("`{filter}`: {error}"))?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(Masked(redactor.clone()));
    // A second subscriber can only be there in tests.
    let _ = match globals.log_format {
        LogFormat::Plain => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    Ok(())
}

struct Masked(Redactor);

/// One record of the log; written whole, so that no secret is cut in two.
struct Line {
    redactor: Redactor,
    text: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Masked {
    type Writer = Line;
    fn make_writer(&'a self) -> Line {
        Line { redactor: self.0.clone(), text: Vec::new() }
    }
}

impl std::io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let clean = self.redactor.bytes(&self.text);
        // Nobody is left to tell when stderr is gone.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), &clean);
    }
}
