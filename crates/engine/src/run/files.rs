//! Files that are whole at every moment: an artifact store may copy the directory at any time.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Writes a file under a temporary name and renames it, so that readers see the old content or the new one.
pub(super) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file");
    // The process id keeps two runs that share a directory apart.
    let temporary = directory.join(format!(".{}.{}.tmp", super::text::start(name, 100), std::process::id()));
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Whether a file of this name is one that [`write_whole`] was writing when its process was killed.
pub(super) fn is_torn(name: &str) -> bool {
    let process = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp")?.rsplit_once('.'));
    process.is_some_and(|(_, process)| process.parse::<u32>().is_ok())
}

/// A file that grows by whole lines, each one written at once.
#[derive(Debug)]
pub(super) struct Lines {
    file: File,
}

impl Lines {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file })
    }

    /// Marks the file as ours for as long as this process lives. False when another one has it.
    pub(super) fn lock(&self) -> bool {
        // Where locks are not supported nobody can hold one.
        !matches!(self.file.try_lock(), Err(std::fs::TryLockError::WouldBlock))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.file.metadata().is_ok_and(|metadata| metadata.len() == 0)
    }

    pub(super) fn push(&mut self, line: &str) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        self.file.write_all(&bytes)
    }
}

/// A relative path with `/`, below the run directory whatever it contains.
pub(super) fn below(root: &Path, path: &str) -> PathBuf {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "." | ".."));
    let mut full = root.to_path_buf();
    let mut any = false;
    for part in parts {
        full.push(super::name::file_safe(part));
        any = true;
    }
    if !any {
        full.push("_");
    }
    full
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/file.txt");
        write_whole(&path, b"one").unwrap();
        write_whole(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_long_name_of_any_letters_can_be_written_and_a_torn_file_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(format!("x{}.txt", "é".repeat(80)));
        write_whole(&path, b"one").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        assert!(is_torn(".summary.json.4711.tmp"));
        assert!(!["summary.json", ".hidden", "theirs.4711.tmp", ".theirs.tmp"].into_iter().any(is_torn));
    }

    #[test]
    fn a_path_cannot_leave_the_directory() {
        let root = Path::new("/run");
        assert_eq!(below(root, "../../etc/passwd"), Path::new("/run/etc/passwd"));
        assert_eq!(below(root, "/abs"), Path::new("/run/abs"));
        assert_eq!(below(root, "logs/system:x?.log"), Path::new("/run/logs/system_x_.log"));
        assert_eq!(below(root, ".."), Path::new("/run/_"));
    }
}
