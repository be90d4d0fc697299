//! A scenario file as a JSON value that remembers on which line each of its fields stands.
//!
//! Fields are checked only after the file was laid over the default scenario, when a parser's own idea of where it was is
//! gone; so the lines are kept by the path of the field.

use std::collections::BTreeMap;
use std::fmt;

use granit_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};

/// The path of a field: keys, and places in lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Path(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Key(String),
    Place(usize),
}

impl Path {
    /// The path of something below this one.
    pub(super) fn key(&self, key: impl Into<String>) -> Self {
        self.and(Segment::Key(key.into()))
    }

    /// The path of an item of this list.
    pub(super) fn place(&self, place: usize) -> Self {
        self.and(Segment::Place(place))
    }

    fn and(&self, segment: Segment) -> Self {
        let mut path = self.clone();
        path.0.push(segment);
        path
    }

    /// What it leads to.
    pub(super) fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |value, segment| match segment {
            Segment::Key(key) => value.get(key),
            Segment::Place(place) => value.get(place),
        })
    }

    /// Takes what it leads to out of its mapping; `false` when it is in none.
    pub(super) fn take_out(&self, value: &mut Value) -> bool {
        let Some((Segment::Key(last), before)) = self.0.split_last() else { return false };
        let parent = before.iter().try_fold(value, |value, segment| match segment {
            Segment::Key(key) => value.get_mut(key),
            Segment::Place(place) => value.get_mut(place),
        });
        parent.and_then(Value::as_object_mut).is_some_and(|map| map.remove(last).is_some())
    }
}

impl From<&serde_path_to_error::Path> for Path {
    fn from(path: &serde_path_to_error::Path) -> Self {
        use serde_path_to_error::Segment as Found;
        let segments = path.iter().filter_map(|segment| match segment {
            Found::Seq { index } => Some(Segment::Place(*index)),
            Found::Map { key } => Some(Segment::Key(key.clone())),
            Found::Enum { .. } | Found::Unknown => None,
        });
        Self(segments.collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, segment) in self.0.iter().enumerate() {
            match segment {
                // `v1.10` and `g4dn.xlarge` are one key each.
                Segment::Key(key) if key.contains(['.', '[', ' ']) => write!(f, "[\"{key}\"]")?,
                Segment::Key(key) if at == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Place(place) => write!(f, "[{place}]")?,
            }
        }
        Ok(())
    }
}

/// Where each field stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines(BTreeMap<Path, usize>);

impl Lines {
    /// The line of a field, or of the nearest thing around it that the file has.
    pub(super) fn near(&self, path: &Path) -> Option<usize> {
        let mut path = path.clone();
        loop {
            if let Some(line) = self.0.get(&path) {
                return Some(*line);
            }
            path.0.pop()?;
            if path.0.is_empty() {
                return None;
            }
        }
    }
}

/// What is wrong with a file, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) line: Option<usize>,
    pub(super) path: Path,
    pub(super) text: String,
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) value: Value,
    pub(super) lines: Lines,
}

/// More values than any scenario has; only anchors that multiply get there.
const MOST: usize = 100_000;

/// Reads a file of one document. An empty one is an empty mapping.
pub(super) fn read(text: &str) -> Result<Document, Problem> {
    let mut reader =
        Reader { events: Parser::new_from_str(text), anchors: BTreeMap::new(), lines: Lines::default(), count: 0 };
    let mut found = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            Event::StreamEnd => break,
            _ if found.is_some() => {
                return Err(at(&span, &Path::default(), "a second document begins; a scenario is one"));
            }
            event => found = Some(reader.value(event, &span, &Path::default())?),
        }
    }
    let value = match found {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(value) => value,
    };
    Ok(Document { value, lines: reader.lines })
}

fn at(span: &Span, path: &Path, text: impl Into<String>) -> Problem {
    Problem { line: Some(span.start.line()), path: path.clone(), text: text.into() }
}

struct Reader<'a> {
    events: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: BTreeMap<usize, Value>,
    lines: Lines,
    count: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        loop {
            match self.events.next_event() {
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok(next)) => return Ok(next),
                Some(Err(error)) => {
                    let line = Some(error.marker().line());
                    return Err(Problem { line, path: Path::default(), text: error.info() });
                }
                None => return Ok((Event::StreamEnd, Span::default())),
            }
        }
    }

    fn value(&mut self, event: Event<'a>, span: &Span, path: &Path) -> Result<Value, Problem> {
        self.lines.0.entry(path.clone()).or_insert(span.start.line());
        self.count += 1;
        let (anchor, value) = match event {
            Event::Alias(id) => {
                let known = self.anchors.get(&id).cloned();
                (0, known.ok_or_else(|| at(span, path, "an alias inside of what it stands for"))?)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                let value = if style == ScalarStyle::Plain && !is_text {
                    plain(&text).map_err(|text| at(span, path, text))?
                } else {
                    Value::from(text.as_ref())
                };
                (anchor, value)
            }
            Event::SequenceStart(_, anchor, _) => (anchor, self.list(path)?),
            Event::MappingStart(_, anchor, _) => (anchor, self.mapping(path)?),
            _ => return Err(at(span, path, "not a value")),
        };
        self.count += if anchor == 0 { 0 } else { size(&value) };
        if self.count > MOST {
            return Err(at(span, path, "more values than a scenario can have"));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn list(&mut self, path: &Path) -> Result<Value, Problem> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(items.into());
            }
            items.push(self.value(event, &span, &path.place(items.len()))?);
        }
    }

    fn mapping(&mut self, path: &Path) -> Result<Value, Problem> {
        let (mut map, mut bases) = (Map::new(), Vec::new());
        loop {
            let (event, span) = self.next()?;
            let key = match event {
                Event::MappingEnd => break,
                // As it is written: `4.10` is a channel, and not the number 4.1.
                Event::Scalar(text, ..) => text.into_owned(),
                _ => return Err(at(&span, path, "a key that is no plain word")),
            };
            let inner = path.key(key.clone());
            self.lines.0.insert(inner.clone(), span.start.line());
            let (event, value) = self.next()?;
            let value = self.value(event, &value, &inner)?;
            if key == "<<" {
                bases.push((span, value));
            } else if map.insert(key.clone(), value).is_some() {
                return Err(at(&span, &inner, format!("the key `{key}` is given twice")));
            }
        }
        for (span, base) in bases {
            let several = if let Value::Array(several) = base { several } else { vec![base] };
            for base in several {
                let Value::Object(base) = base else {
                    return Err(at(&span, path, "`<<` wants a mapping or a list of mappings"));
                };
                for (key, value) in base {
                    map.entry(key).or_insert(value);
                }
            }
        }
        Ok(map.into())
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// A word without quotes, by YAML 1.2's core schema: `yes` is text, `0x1F` a number.
fn plain(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "true" | "True" | "TRUE" => return Ok(true.into()),
        "false" | "False" | "FALSE" => return Ok(false.into()),
        _ => {}
    }
    let bare = text.trim_start_matches(['+', '-']);
    if matches!(bare, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return Err(format!("`{text}` is no finite number; quote it if text is meant"));
    }
    let radix =
        |prefix: &str, radix| text.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, radix).ok());
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Ok(number.into());
    }
    let number = bare.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && text.len() - bare.len() <= 1
        && bare.chars().all(|letter| letter.is_ascii_digit() || ".eE+-".contains(letter));
    let leading_zero = bare.len() > 1 && bare.starts_with('0') && bare.chars().all(|digit| digit.is_ascii_digit());
    if !number || leading_zero {
        return Ok(text.into());
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(whole.into());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Ok(whole.into());
    }
    match text.parse::<f64>().ok().map(|real| (real, Number::from_f64(real))) {
        Some((_, Some(real))) => Ok(Value::Number(real)),
        Some((_, None)) => Err(format!("`{text}` is no finite number; quote it if text is meant")),
        None => Ok(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str) -> Value {
        read(text).unwrap().value
    }

    #[test]
    fn plain_words_are_what_yaml_1_2_says() {
        let text = "a: yes\nb: no\nc: y\nd: tRuE\ne: 0755\nf: 1_000\ng: 12:30\nh: true\ni: 12\nj: -1.5\nk: ~\nl: 0x1F\nm: 0o755\nn: 1e3\no: '7'\np: !!str 8\nq: 18446744073709551615\nr: 1.2.3\ns: -\n";
        let text = text.replace("s: -\n", "s: --\n");
        assert_eq!(
            value(&text),
            json!({
                "a": "yes", "b": "no", "c": "y", "d": "tRuE", "e": "0755", "f": "1_000", "g": "12:30", "h": true,
                "i": 12, "j": -1.5, "k": null, "l": 31, "m": 493, "n": 1000.0, "o": "7", "p": "8",
                "q": 18_446_744_073_709_551_615_u64, "r": "1.2.3", "s": "--"
            })
        );
    }

    #[test]
    fn keys_are_as_they_are_written_and_bases_are_merged() {
        assert_eq!(value("4.10: [a]\n1: b\n"), json!({"4.10": ["a"], "1": "b"}));
        assert_eq!(
            value("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n"),
            json!({"base": {"x": 1, "y": 2}, "use": {"y": 3, "x": 1}})
        );
        assert_eq!(value("# nothing\n"), json!({}));
    }

    #[test]
    fn every_field_has_its_line_and_what_is_not_there_the_line_around_it() {
        let lines = read("a:\n  b:\n  - c: 1\n\n    d.e: 2\n").unwrap().lines;
        let item = Path::default().key("a").key("b").place(0);
        assert_eq!(lines.near(&item.key("c")), Some(3));
        assert_eq!(lines.near(&item.key("d.e")), Some(5));
        assert_eq!(lines.near(&item.key("x").place(7)), Some(3));
        assert_eq!(lines.near(&Path::default().key("z")), None);
        assert_eq!(item.key("d.e").key("f").to_string(), "a.b[0][\"d.e\"].f");
    }

    #[test]
    fn what_would_be_lost_or_cannot_be_read_has_its_line() {
        let wrong = |text: &str| {
            let problem = read(text).unwrap_err();
            (problem.line, problem.path.to_string(), problem.text)
        };
        assert_eq!(wrong("a: 1\nb: 2\na: 3\n"), (Some(3), "a".into(), "the key `a` is given twice".into()));
        assert_eq!(wrong("a:\n  b: .inf\n").0, Some(2));
        assert_eq!(wrong("a: 1e999\n").1, "a");
        assert_eq!(wrong("a: 1\n---\nb: 2\n").0, Some(3));
        assert_eq!(wrong("a: 1\nb: [\n").0, Some(2));
        assert_eq!(wrong("a: 1\n b: 2\n").0, Some(2));
        assert_eq!(wrong("? [a]\n: 1\n").2, "a key that is no plain word");
        assert!(wrong("a: *nobody\n").2.contains("unknown anchor"));
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..9 {
            let inner = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb = format!("{bomb}a{level}: &a{level} [{inner}]\n");
        }
        assert_eq!(wrong(&bomb).2, "more values than a scenario can have");
    }
}
