//! What a reader of the sources would trip over: long files, forgotten files, tests that cannot fail, fixed sleeps.

use std::path::Path;

use anyhow::{Context, Result};

use super::Finding;
use crate::cargo;

/// Past this many lines a file holds more than one idea.
const LONGEST: usize = 500;

pub(super) fn check() -> Result<Vec<Finding>> {
    let listed = cargo::output("git", &["ls-files", "--cached", "--others", "--exclude-standard", "*.rs"])?;
    let mut findings = Vec::new();
    for place in listed.lines().filter(|place| cargo::root().join(place).exists()) {
        let source =
            std::fs::read_to_string(cargo::root().join(place)).with_context(|| format!("cannot read {place}"))?;
        let found = look(place, &source).into_iter().chain(forgotten(place));
        findings.extend(found.map(|text| Finding { place: place.to_owned(), text }));
    }
    Ok(findings)
}

/// What is wrong inside one file.
fn look(place: &str, source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let lines = source.lines().count();
    if lines > LONGEST {
        found.push(format!("{lines} lines: split it by idea (at most {LONGEST})"));
    }
    let test = place.contains("/tests/") || place.ends_with("/tests.rs");
    // Spelled in two parts so that this file does not find itself.
    for (first, second, why) in [
        ("#[ign", "ore", "a test that is not run is no test"),
        ("assert!(tr", "ue", "an assertion that cannot fail"),
        ("#[allow", "(", "use #[expect(lint, reason = \"…\")]"),
    ] {
        if source.contains(&format!("{first}{second}")) {
            found.push(format!("`{first}{second}`: {why}"));
        }
    }
    if test && source.contains("thread::sleep(") {
        found.push("a fixed sleep in a test: wait on what it waits for".to_owned());
    }
    found
}

/// Whether a file below `src` is part of no module.
fn forgotten(place: &str) -> Option<String> {
    let path = Path::new(place);
    let stem = path.file_stem()?.to_str()?;
    let root_file = matches!(stem, "lib" | "main") || place.contains("/bin/") || place.contains("/examples/");
    if !place.contains("/src/") || root_file {
        return None;
    }
    let folder = path.parent()?;
    let (module, parents) = if stem == "mod" {
        let above = folder.parent()?;
        (folder.file_name()?.to_str()?, module_files(above))
    } else {
        (stem, module_files(folder))
    };
    let declared = parents.iter().any(|parent| {
        std::fs::read_to_string(cargo::root().join(parent))
            .is_ok_and(|source| source.lines().any(|line| line.trim_end().ends_with(&format!("mod {module};"))))
    });
    (!declared).then(|| format!("is part of no module: add `mod {module};` or delete it"))
}

/// The files that may declare the modules of a folder.
fn module_files(folder: &Path) -> Vec<std::path::PathBuf> {
    vec![folder.join("mod.rs"), folder.join("lib.rs"), folder.join("main.rs"), folder.with_extension("rs")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_idle_tests_are_found() {
        assert!(look("a/src/x.rs", &"x\n".repeat(501))[0].contains("501 lines"));
        assert_eq!(look("a/src/x.rs", &format!("#[ign{}]", "ore")).len(), 1);
        assert_eq!(look("a/tests/x.rs", "std::thread::sleep(d);").len(), 1);
        assert!(look("a/src/x.rs", "fn main() {}").is_empty());
    }
}
