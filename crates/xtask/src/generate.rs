//! Files that are generated from the code, and the check that they are up to date.

use std::path::Path;

use anyhow::{Context, Result, bail};
use toolbox_core::engine::Exit;

use crate::cargo;

/// A generated file: its place below the root, and what must be in it.
struct Generated {
    place: &'static str,
    content: String,
}

pub(crate) fn run(check: bool) -> Result<()> {
    let mut stale = Vec::new();
    for file in all()? {
        let path = cargo::root().join(file.place);
        if std::fs::read_to_string(&path).is_ok_and(|present| present == file.content) {
            continue;
        }
        stale.push(file.place);
        if !check {
            let folder = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            std::fs::write(&path, &file.content).with_context(|| format!("cannot write {}", file.place))?;
            cargo::say(&format!("wrote {}", file.place));
        }
    }
    if check && !stale.is_empty() {
        bail!("not up to date: {}; run `cargo xtask generate`", stale.join(", "));
    }
    Ok(())
}

fn all() -> Result<Vec<Generated>> {
    let readme = std::fs::read_to_string(cargo::root().join("README.md")).context("cannot read README.md")?;
    let schema = serde_json::to_string_pretty(&toolbox_core::engine::run::summary_schema())?;
    let scenario = serde_json::to_string_pretty(&toolbox_core::cli::scenario_schema())?;
    Ok(vec![
        Generated { place: "README.md", content: between_markers(&readme, "exit codes", &exit_codes())? },
        Generated { place: "crates/rehearsal/SERVED.md", content: toolbox_rehearsal::served_table() },
        Generated { place: "config/schema/summary.schema.json", content: format!("{schema}\n") },
        Generated { place: "config/schema/scenario.schema.json", content: format!("{scenario}\n") },
    ])
}

/// The README's table of exit codes.
fn exit_codes() -> String {
    let rows = Exit::ALL.iter().map(|exit| format!("| {} | {} |\n", exit.code(), exit.meaning()));
    format!("| code | meaning |\n|---|---|\n{}", rows.collect::<String>())
}

/// The text with the part between `<!-- NAME: generated -->` and `<!-- NAME: end -->` replaced.
fn between_markers(text: &str, name: &str, part: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name}: generated -->\n"), format!("<!-- {name}: end -->"));
    let (before, rest) = text.split_once(&begin).with_context(|| format!("no line `{}`", begin.trim_end()))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no line `{end}`"))?;
    Ok(format!("{before}{begin}{part}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let text = "a\n<!-- x: generated -->\nold\n<!-- x: end -->\nb\n";
        assert_eq!(between_markers(text, "x", "new\n").unwrap(), text.replace("old", "new"));
        assert!(between_markers("a", "x", "new").is_err());
    }
}
