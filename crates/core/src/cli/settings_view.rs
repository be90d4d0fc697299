//! `config`: every setting, its value and where it came from.

use std::path::Path;

use serde_json::json;
use toolbox_engine::Report;

use super::display::Paint;
use crate::settings::{Origin, Schema, Settings};

/// The settings as an answer.
pub(crate) fn view(settings: &Settings, schema: &Schema, file: Option<&Path>, paint: Paint) -> Report {
    let mut keys: Vec<String> = schema.all().into_iter().map(|(key, _)| key).collect();
    keys.extend(settings.iter().map(|setting| setting.key.clone()).filter(|key| key.starts_with("deadlines.")));
    keys.sort();
    keys.dedup();
    let rows: Vec<(String, Option<String>, Option<Origin>)> = keys
        .into_iter()
        .map(|key| match settings.setting(&key) {
            Some(setting) => {
                let (shown, origin) = (setting.shown(), setting.origin.clone());
                (key, Some(shown), Some(origin))
            }
            None => (key, None, None),
        })
        .collect();
    let width = rows.iter().map(|(key, ..)| key.len()).max().unwrap_or(0);
    let values = rows.iter().filter_map(|(_, value, _)| value.as_ref().map(String::len)).max().unwrap_or(0).min(40);
    let mut lines = vec![match file {
        Some(file) => format!("configuration file: {}", file.display()),
        None => "configuration file: none".to_owned(),
    }];
    lines.extend(rows.iter().map(|(key, value, origin)| match (value, origin) {
        (Some(value), Some(origin)) => {
            format!("{key:width$}  {value:values$}  {}", paint.faint(&origin.to_string()))
        }
        _ => paint.faint(&format!("{key:width$}  (unset)")),
    }));
    let all: Vec<_> = rows
        .iter()
        .map(|(key, value, origin)| {
            json!({"key": key, "value": value, "origin": origin.as_ref().map(ToString::to_string)})
        })
        .collect();
    Report {
        text: lines.join("\n"),
        json: json!({"file": file.map(|file| file.display().to_string()), "settings": all}),
    }
}
