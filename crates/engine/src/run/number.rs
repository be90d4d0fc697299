//! Numbered directories that two processes never share.

use std::io;
use std::path::{Path, PathBuf};

/// The predecessor's CI numbers its last directory so on purpose; it says nothing about how many there are.
const LAST: u32 = 999;

/// Makes `NNN__<name>` in `parent`, with the number after the highest that is there.
///
/// A number is claimed by creating `.claim-NNN`, which only one process can, and looking again; the claim then becomes
/// the directory by a rename, so there is no moment at which the number looks free.
pub(super) fn create(parent: &Path, name: &str) -> io::Result<PathBuf> {
    std::fs::create_dir_all(parent)?;
    let mut number = highest(parent)?.map_or(0, |number| number + 1);
    loop {
        let claim = parent.join(format!(".claim-{number:03}"));
        match std::fs::create_dir(&claim) {
            Ok(()) => {
                let highest = highest(parent)?;
                if highest.is_none_or(|highest| highest < number) {
                    let path = parent.join(format!("{number:03}__{name}"));
                    std::fs::rename(&claim, &path)?;
                    return Ok(path);
                }
                std::fs::remove_dir(&claim)?;
                number = highest.map_or(number, |highest| highest + 1);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn highest(parent: &Path) -> io::Result<Option<u32>> {
    let mut highest = None;
    for entry in std::fs::read_dir(parent)? {
        let name = entry?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.split_once("__"))
            .and_then(|(number, _)| number.parse().ok())
            .filter(|number| *number != LAST);
        highest = highest.max(number);
    }
    Ok(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_on_after_the_highest_not_after_the_count() {
        let parent = tempfile::tempdir().unwrap();
        let made = create(&parent.path().join("new/deep"), "a__b").unwrap();
        assert!(made.ends_with("new/deep/000__a__b") && made.is_dir());
        for name in ["004__x__y", "999__cluster__wait_for_alert", "notes__7", "007"] {
            std::fs::create_dir(parent.path().join(name)).unwrap();
        }
        assert!(create(parent.path(), "a__b").unwrap().ends_with("005__a__b"));
        assert!(create(parent.path(), "c__d").unwrap().ends_with("006__c__d"));
    }

    #[test]
    fn many_at_once_get_different_numbers() {
        let parent = tempfile::tempdir().unwrap();
        let numbers: Vec<String> = std::thread::scope(|scope| {
            let makers: Vec<_> = (0..16)
                .map(|at| {
                    let parent = parent.path();
                    scope.spawn(move || {
                        let path = create(parent, &format!("verb__{}", at % 4)).unwrap();
                        path.file_name().unwrap().to_str().unwrap()[..3].to_owned()
                    })
                })
                .collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        let different: std::collections::BTreeSet<_> = numbers.iter().collect();
        assert_eq!(different.len(), 16, "{numbers:?}");
        let left = std::fs::read_dir(parent.path()).unwrap().count();
        assert_eq!(left, 16, "no claim is left over");
    }
}
