//! `--plan`: what a verb would do on this cluster.

use serde_json::json;
use toolbox_cluster::Cluster;
use toolbox_engine::event::Role;
use toolbox_engine::plan::{self, Preview, RunOptions, show_duration};
use toolbox_engine::{Plan, Report, Why};

use super::display::failure_lines;
use super::run::{Context, Stage};
use std::time::Duration;

/// The plan as an answer, and the rights that would be missing.
pub(crate) async fn preview(
    context: &Context<'_>,
    stage: &Stage,
    cluster: &Cluster,
    plan: Plan,
) -> Result<(Report, Option<Why>), Why> {
    let name = plan.name().to_owned();
    let gaps = cluster.access_gaps(&plan.effects()).await?;
    let deadlines = context.settings.deadlines();
    let options = RunOptions {
        deadlines: deadlines.into_iter().map(|(name, (limit, _))| (name, limit)).collect(),
        ..RunOptions::new(stage.clock.clone())
    };
    let steps = plan::preview(plan, options).await;
    let report = Report { text: text(&name, &steps, context), json: as_json(&name, &steps) };
    Ok((report, cluster.access_why(&gaps)))
}

fn text(name: &str, steps: &[Preview], context: &Context<'_>) -> String {
    let paint = context.paint;
    let changing: usize = steps.iter().map(|step| step.would.len()).sum();
    let mut lines = vec![match changing {
        0 => format!("{name} would change nothing now"),
        1 => format!("{name} would make 1 change, as far as can be told now"),
        more => format!("{name} would make {more} changes, as far as can be told now"),
    }];
    for (at, preview) in steps.iter().enumerate() {
        let step = &preview.step;
        lines.push(format!("{:>3}. {}: {}", at + 1, paint.strong(&step.id), step.title));
        for would in &preview.would {
            lines.push(format!("     {} {would}", paint.good("would")));
        }
        if !preview.note.is_empty() && preview.would.is_empty() {
            lines.push(format!("     {}", preview.note));
        }
        if let Some(why) = &preview.why {
            lines.extend(failure_lines(why, "would fail", paint).into_iter().map(|line| format!("     {line}")));
        }
        let mut about = Vec::new();
        if !step.needs.is_empty() {
            about.push(format!("after {}", step.needs.join(", ")));
        }
        let limit = show_duration(Duration::from_secs_f64(step.deadline_s.max(0.0)));
        match (&step.wait, step.role) {
            (Some(wait), _) => about.push(format!("at most {limit} (--deadline {wait}=…)")),
            (None, Role::Wait) => about.push(format!("at most {limit}")),
            _ => {}
        }
        if let Some(per) = &step.per {
            about.push(format!("once per {per}"));
        }
        if !about.is_empty() {
            lines.push(paint.faint(&format!("     {}", about.join("; "))));
        }
    }
    lines.join("\n")
}

fn as_json(name: &str, steps: &[Preview]) -> serde_json::Value {
    let steps: Vec<_> = steps
        .iter()
        .map(|preview| {
            let mut step = json!(preview.step);
            step["would"] = json!(preview.would);
            step["note"] = json!(preview.note);
            step["why"] = json!(preview.why);
            step
        })
        .collect();
    json!({"plan": name, "steps": steps})
}
