use super::*;
use crate::event::{Event, Stamped};
use crate::run::tests::{at, broken, failed_run, fold, started};
use crate::why::{Exit, ObjectRef, Why};

/// Tags that are opened are closed, in the right order: what a browser would repair hides mistakes.
fn check_nesting(html: &str) {
    const VOID: [&str; 2] = ["meta", "br"];
    let mut open: Vec<&str> = Vec::new();
    for part in html.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "before: {part}");
        } else if !tag.starts_with('!') {
            let name = tag.split_whitespace().next().unwrap();
            if !VOID.contains(&name) {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "never closed: {open:?}");
}

#[test]
fn the_report_says_what_matters_and_asks_nobody() {
    let html = fold(&failed_run()).html();
    check_nesting(&html);
    let html = html.replace("&#x2f;", "/");
    for text in [
        "image nvcr.io/x cannot be pulled: not found",
        "check the version",
        "Back-off pulling image",
        "tbx gpu-operator deploy --channel &#x27;v1.11 beta&#x27;",
        "is not ready",
        "GPU 0 is slow",
        "Namespace/nfd",
        "1.11.1",
        "3 min 55 s",
    ] {
        assert!(html.contains(text), "{text}");
    }
    for outside in ["<script", "<link", "src=", "url(", "@import", "http://"] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn nothing_in_it_is_taken_for_markup() {
    let evil = "</pre><script>alert(1)</script>\"'&\u{1b}[31m{{ 7 * 7 }}";
    let why = Why::waiting(ObjectRef::thing(evil, evil), "x", evil).with(evil, evil);
    let mut events = failed_run();
    for event in &mut events {
        match &mut event.event {
            Event::RunStarted { name, command, .. } => {
                evil.clone_into(name);
                command.push(evil.to_owned());
            }
            Event::Planned { steps } => steps.iter_mut().for_each(|step| {
                evil.clone_into(&mut step.title);
                step.needs.push(evil.to_owned());
            }),
            Event::Pending { why: old, .. } | Event::Ended { ended: crate::event::Ended::Failed { why: old }, .. } => {
                *old = why.clone();
            }
            Event::Version { what, asked, .. } => {
                evil.clone_into(what);
                *asked = Some(evil.to_owned());
            }
            Event::Warning { name, text, .. } => {
                evil.clone_into(name);
                evil.clone_into(text);
            }
            _ => {}
        }
    }
    let record = fold(&events);
    for html in [record.html(), render_comparison(&record, &record)] {
        check_nesting(&html);
        assert!(!html.contains("<script"));
        assert!(html.contains("{{ 7 * 7 }}"));
        assert!(!html.contains('\u{1b}'));
    }
}

#[test]
fn an_empty_and_an_unfinished_run_can_be_shown() {
    check_nesting(&Record::default().html());
    let events = failed_run();
    for length in 0..events.len() {
        check_nesting(&fold(&events[..length]).html());
    }
    let refused: Vec<Stamped> =
        vec![at(0.0, started(&["tbx"])), at(0.1, Event::RunEnded { exit: Exit::Access, why: Some(broken()) })];
    let html = fold(&refused).html();
    assert!(html.contains("could not be done") && html.contains("cannot be pulled"));
}

#[test]
fn a_comparison_shows_what_differs() {
    let left = fold(&failed_run());
    let mut events = failed_run();
    for event in events.iter_mut().filter(|event| event.t >= 200.0) {
        event.t += 60.0;
    }
    let html = render_comparison(&left, &fold(&events));
    check_nesting(&html);
    assert!(html.contains("+1 min 00 s") && html.contains(">same<"), "{html}");
}

#[test]
fn looking_for_objects_is_no_wait_unless_it_takes_time() {
    let listing = |t: f64| {
        let why = Why::waiting(ObjectRef::new("v1", "Node", None, "<any>"), "listing", "is being looked for");
        at(t, Event::Pending { step: "nodes".into(), why })
    };
    let before = fold(&failed_run()).html();
    let quick: Vec<Stamped> = failed_run()
        .into_iter()
        .flat_map(|event| {
            let first = matches!(&event.event, Event::Pending { .. });
            first.then(|| listing(event.t)).into_iter().chain([event])
        })
        .collect();
    assert_eq!(fold(&quick).html(), before);
    let slow: Vec<Stamped> = failed_run()
        .into_iter()
        .flat_map(|event| {
            let first = matches!(&event.event, Event::Pending { .. });
            first.then(|| listing(event.t - 1.5)).into_iter().chain([event])
        })
        .collect();
    assert!(fold(&slow).html().contains("is being looked for"));
}
