use serde_json::{Value, json};

use super::*;

fn plain(template: &str, values: Value) -> String {
    Templates::new(Style::Plain).text("t.yml", template, &values).unwrap()
}

fn objects(template: &str, values: Value) -> Vec<Value> {
    Templates::new(Style::Plain).objects("t.yml", template, &values).unwrap()
}

#[test]
fn users_templates_are_not_quoted_whatever_they_are_called() {
    for name in ["gpu_burn_pod.yml", "pod.yaml.j2", "pod.json"] {
        let text =
            Templates::new(Style::Plain).text(name, "name: gpu-burn-{{ node }}\n", &json!({"node": "a"})).unwrap();
        assert_eq!(text, "name: gpu-burn-a\n", "{name}");
    }
}

#[test]
fn our_own_yaml_templates_write_values_as_json() {
    let house = Templates::new(Style::House);
    let values = json!({"v": "4.10", "l": ["a"], "n": null});
    let template = "v: {{ v }}\nl: {{ l }}\nn: {{ n }}\n";
    assert_eq!(house.text("a.yaml.j2", template, &values).unwrap(), "v: \"4.10\"\nl: [\"a\"]\nn: null\n");
    assert!(house.text("a.txt", template, &values).unwrap().starts_with("v: 4.10\n"));
}

#[test]
fn a_value_cannot_change_the_structure_of_a_manifest() {
    for nasty in ["a: b", "x\ny: z", "\"", "'", "# no", "- a", "{a", "*a", "&a", "yes", "4.10", ""] {
        let found = objects("channel: \"{{ v }}\"\nplain: {{ v }}\nname: gpu-{{ v }}\n", json!({ "v": nasty }));
        assert_eq!(found, [json!({"channel": nasty, "plain": nasty, "name": format!("gpu-{nasty}")})], "{nasty:?}");
    }
}

#[test]
fn a_value_that_stands_alone_keeps_its_type() {
    let found = objects(
        "replicas: \"{{ n }}\"\nport: {{ p | int }}\nnvidia.com/gpu: {{ k }}\nlist: {{ l }}\nnot: {{ none }}\n",
        json!({"n": 3, "p": "8080", "k": "1", "l": ["a", {"b": true}]}),
    );
    assert_eq!(
        found,
        [json!({"replicas": 3, "port": 8080, "nvidia.com/gpu": "1", "list": ["a", {"b": true}], "not": null})]
    );
}

#[test]
fn omit_takes_the_key_away_and_is_an_error_elsewhere() {
    let template = "spec: {source: \"{{ catalog | default(omit) }}\", keep: [1, '{{ x | default(omit) }}']}";
    assert_eq!(objects(template, json!({})), [json!({"spec": {"keep": [1]}})]);
    let error = Templates::new(Style::Plain).objects("t.yml", "a: x-{{ b | default(omit) }}", &json!({})).unwrap_err();
    assert_eq!(error.to_string(), "t.yml: `a`: `omit` within text");
    let error = Templates::new(Style::Plain).text("t.sh", "x={{ b | default(omit) }}", &json!({})).unwrap_err();
    assert!(error.to_string().contains("only a manifest"), "{error}");
}

#[test]
fn text_of_several_lines_keeps_its_place_in_a_block() {
    let template = "data:\n  run.sh: |\n    {{ script | indent(4) }}\n  list: {{ l | to_json }}\n";
    assert_eq!(
        objects(template, json!({"script": "#!/bin/sh\n  echo 'a: b'", "l": ["x"]})),
        [json!({"data": {"run.sh": "#!/bin/sh\n  echo 'a: b'\n", "list": ["x"]}})]
    );
}

#[test]
fn json_is_written_as_ansible_writes_it() {
    let values = json!({"cmd": ["sh", "-c", "a && b > c"], "m": {"b": 1, "a": "ü😀"}});
    assert_eq!(plain("{{ cmd | to_json }}", values.clone()), r#"["sh", "-c", "a && b > c"]"#);
    assert_eq!(plain("{{ m | to_json }}", values.clone()), r#"{"b": 1, "a": "\u00fc\ud83d\ude00"}"#);
    assert_eq!(plain("{{ m | to_nice_json }}", values), "{\n    \"a\": \"\\u00fc\\ud83d\\ude00\",\n    \"b\": 1\n}");
}

#[test]
fn default_takes_its_second_argument() {
    let template = "{{ base | default('first', true) }}/{{ base | default('first') }}";
    assert_eq!(plain(template, json!({"base": ""})), "first/");
    assert_eq!(plain("{{ base | default('first', true) }}", json!({"base": null})), "first");
    assert_eq!(plain(template, json!({})), "first/first");
    assert_eq!(plain("{{ a.b | default('x') }}", json!({"a": {}})), "x");
}

#[test]
fn an_undefined_name_is_an_error_with_file_and_line() {
    let error = Templates::new(Style::Plain).text("sub.yml.j2", "a: 1\nb: {{ nowhere }}\n", &json!({})).unwrap_err();
    assert_eq!((error.file.as_str(), error.line), ("sub.yml.j2", Some(2)));
    assert!(error.to_string().contains("undefined"), "{error}");
    assert!(Templates::new(Style::Plain).objects("x.yml", "{% if nowhere %}a: 1{% endif %}", &json!({})).is_err());
}

#[test]
fn the_word_false_is_false() {
    for (word, is) in [
        ("false", "False"),
        ("no", "False"),
        ("off", "False"),
        ("y", "False"),
        ("yes", "True"),
        ("True", "True"),
        ("ON", "True"),
        ("1", "True"),
    ] {
        assert_eq!(plain("{{ v | bool }}", json!({ "v": word })), is, "{word}");
    }
}

#[test]
fn the_last_newline_is_kept_and_blocks_take_theirs_along() {
    assert_eq!(plain("{% if a %}\n  x\n{% endif %}\nend\n", json!({"a": true})), "  x\nend\n");
}

#[test]
fn filters_bind_tighter_than_plus_and_know_pythons_references() {
    assert_eq!(plain("{{ a + b | regex_replace('x', 'y') }}", json!({"a": "x", "b": "x"})), "xy");
    assert_eq!(
        plain(
            r"{{ n | regex_replace('^(.*)-[a-z]$', '\\1') }}|{{ n | regex_replace('(w)', '<\\g<1>$>') }}",
            json!({"n": "worker-a"})
        ),
        "worker|<w$>orker-a"
    );
    let error = Templates::new(Style::Plain)
        .text("t", "{{ n | regex_replace('a(?=b)', '') }}", &json!({"n": "x"}))
        .unwrap_err();
    assert!(error.to_string().contains("`a(?=b)` cannot be used: error: look-around"), "{error}");
}
