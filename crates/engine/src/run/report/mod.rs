//! The report: one HTML file without scripts or network, made from a record alone.

mod compare;
mod timeline;
mod view;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment};
use serde::Serialize;

use super::record::Record;

const STYLE: &str = include_str!("../../../assets/report.css");

impl Record {
    /// The report as one HTML file.
    pub fn html(&self) -> String {
        render("report.html", &view::ReportView::new(self))
    }
}

/// Two runs side by side, as one HTML file.
pub fn render_comparison(left: &Record, right: &Record) -> String {
    render("compare.html", &compare::CompareView::new(left, right))
}

fn render(name: &str, view: &impl Serialize) -> String {
    let mut environment = Environment::new();
    // Whatever the names of the templates are, everything in them is escaped.
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("invariant: the delimiters are the usual ones"));
    let templates = [
        ("report.html", include_str!("../../../assets/report.html")),
        ("compare.html", include_str!("../../../assets/compare.html")),
        ("parts.html", include_str!("../../../assets/parts.html")),
    ];
    let rendered = templates
        .into_iter()
        .try_for_each(|(name, source)| environment.add_template(name, source))
        .and_then(|()| environment.get_template(name))
        .and_then(|template| template.render(minijinja::context! { style => STYLE, view => Value::from(Serde(view)) }));
    rendered.expect("invariant: the templates are part of the program and a test renders each")
}

#[cfg(test)]
mod tests;
