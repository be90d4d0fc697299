//! A bug of ours: a short message, where the run's files are, exit code 70.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static RUN_DIR: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Where the run's files are, should something go wrong.
pub(crate) fn remember(run_dir: &Path) {
    *RUN_DIR.lock().unwrap_or_else(PoisonError::into_inner) = Some(run_dir.to_owned());
}

/// Replaces Rust's own message.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line())).unwrap_or_default();
        let payload = panic.payload();
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        let run_dir = RUN_DIR.lock().unwrap_or_else(PoisonError::into_inner);
        let with = run_dir.as_ref().map(|path| format!(", with {}", path.display())).unwrap_or_default();
        super::output::complain(&format!("error: tbx: a bug of this program: {message}{place}\nnext: report it{with}"));
    }));
}
