//! `why`: what holds an object up, on the live cluster.
//!
//! The object is judged as the waits judge it, then what it owns is followed down to what does not come up, and its
//! owners up to the first one that has no owner.

mod judge;
mod kind;
mod look;

use serde_json::json;
use toolbox_cluster::Cluster;
use toolbox_engine::{Cause, Exit, FailureVerdict, ObjectRef, Report, Verdict, Why};

use super::display::Paint;
use super::own::WhyArgs;
pub(crate) use kind::check;
use look::{Found, Looking};

/// The object that was asked about cannot be explained.
#[derive(Debug)]
enum AskCause {
    Absent { near: Vec<String> },
}

impl Cause for AskCause {
    fn code(&self) -> &'static str {
        "no-such-object"
    }
    fn text(&self) -> String {
        "does not exist".to_owned()
    }
    fn next(&self) -> String {
        let AskCause::Absent { near } = self;
        if near.is_empty() {
            "check the name and the namespace (-n)".to_owned()
        } else {
            format!("there are: {}", near.join(", "))
        }
    }
    fn verdict(&self) -> FailureVerdict {
        FailureVerdict::Configuration
    }
    fn exit(&self) -> Exit {
        Exit::Failed
    }
}

/// Names that are offered when the one asked for does not exist.
const OFFERED: usize = 8;

/// Looks at the object and at everything around it.
pub(crate) async fn why(cluster: &Cluster, args: &WhyArgs, paint: Paint) -> Result<Report, Why> {
    let (kind, name) = kind::parse(cluster, &args.object).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| cluster.info().namespace.clone());
    let namespace = kind.namespaced.then_some(namespace.as_str());
    let meant = kind.object(namespace, &name);
    let Some(object) = cluster.get(&kind, namespace, &name).await? else {
        let looking = Looking::new(cluster);
        let near = looking.names(&kind, namespace, &name, OFFERED).await;
        return Err(Why::new(meant, &AskCause::Absent { near }));
    };
    let mut looking = Looking::new(cluster);
    let found = looking.down(object.clone(), 0).await;
    let owners = looking.up(&object).await;
    Ok(answer(&found, &owners, &looking.notes, paint))
}

/// The most exact reason that was found: the deepest one, the first of several.
fn reason(found: &[Found]) -> Option<&Why> {
    let held = found.iter().filter(|found| found.why().is_some());
    let deepest = held.clone().map(|found| found.depth).max()?;
    held.filter(|found| found.depth == deepest).find_map(Found::why)
}

fn answer(found: &[Found], owners: &[Found], notes: &[String], paint: Paint) -> Report {
    let mut lines: Vec<String> = found.iter().flat_map(|found| lines_of(found, paint)).collect();
    if !owners.is_empty() {
        let owners: Vec<String> = owners.iter().map(|owner| format!("{} ({})", owner.object, owner.text())).collect();
        lines.push(format!("owned by: {}", owners.join(" < ")));
    }
    lines.extend(notes.iter().map(|note| paint.odd(note)));
    let why = reason(found);
    match why {
        Some(why) => {
            lines.push(format!("{} {}: {}", paint.strong("why:"), why.object, why.cause));
            if !why.next.is_empty() {
                lines.push(format!("{} {}", paint.strong("next:"), why.next));
            }
        }
        None => lines.push(format!("{} nothing holds it up", paint.good("why:"))),
    }
    let each = |found: &Found| {
        let state = match &found.verdict {
            Verdict::Done(_) => "done",
            Verdict::Pending(_) => "pending",
            Verdict::Failed(_) => "failed",
        };
        json!({"object": found.object, "depth": found.depth, "state": state, "text": found.text(), "why": found.why()})
    };
    let json = json!({
        "why": why,
        "found": found.iter().map(each).collect::<Vec<_>>(),
        "owners": owners.iter().map(each).collect::<Vec<_>>(),
        "notes": notes,
    });
    Report { text: lines.join("\n"), json }
}

fn lines_of(found: &Found, paint: Paint) -> Vec<String> {
    let indent = "  ".repeat(found.depth);
    let text = match &found.verdict {
        Verdict::Done(text) => paint.good(text),
        Verdict::Pending(why) => paint.odd(&why.cause),
        Verdict::Failed(why) => paint.bad(&why.cause),
    };
    let mut lines = vec![format!("{indent}{}: {text}", named(&found.object))];
    for evidence in found.why().iter().flat_map(|why| &why.evidence) {
        let mut texts = evidence.text.lines();
        match (texts.next(), texts.clone().next()) {
            (Some(only), None) => lines.push(format!("{indent}    {}: {only}", evidence.label)),
            (first, _) => {
                lines.push(format!("{indent}    {}:", evidence.label));
                lines.extend(first.into_iter().chain(texts).map(|line| format!("{indent}    | {line}")));
            }
        }
    }
    lines
}

fn named(object: &ObjectRef) -> String {
    object.to_string()
}

#[cfg(test)]
mod tests;
