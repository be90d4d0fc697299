use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::json;

use super::*;

fn knowing(secret: &str) -> Redactor {
    let redactor = Redactor::new();
    redactor.register(secret);
    redactor
}

#[test]
fn a_secret_never_prints_itself() {
    let secret = Secret::from("hunter22");
    assert_eq!(format!("{secret} {secret:?}"), "*** ***");
    assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
    assert_eq!(secret.expose(), "hunter22");
    assert_eq!(serde_json::from_str::<Secret>("\"hunter22\"").unwrap(), secret);
}

#[test]
fn a_known_value_goes_in_every_encoding() {
    let value = "p@ss \"w<o>rd/é&1";
    let redactor = knowing(&format!("{value}\n"));
    let json = serde_json::to_string(value).unwrap();
    let texts = [
        format!("is {value}."),
        format!("json {json}"),
        format!("twice {}", serde_json::to_string(&json).unwrap()),
        format!("b64 {}", STANDARD.encode(value)),
        format!("b64 {}", STANDARD.encode(format!("{value}\n"))),
        format!("b64 {}", STANDARD.encode(format!("user:{value}"))),
        format!("b64 {}", STANDARD.encode(format!("ab{value}cd"))),
        format!("url {}", URL_SAFE.encode(format!("a{value}"))),
        "percent p%40ss%20%22w%3Co%3Erd%2F%C3%A9%261".to_owned(),
        "plus p%40ss+%22w%3Co%3Erd%2F%C3%A9%261".to_owned(),
        "xml p@ss &quot;w&lt;o&gt;rd/é&amp;1".to_owned(),
        format!("debug {value:?}"),
    ];
    for text in texts {
        let clean = redactor.text(&text);
        assert!(clean.contains(MASK), "{text} → {clean}");
        assert!(!clean.contains("ss") && !clean.contains("rd"), "{text} → {clean}");
    }
}

#[test]
fn ordinary_text_stays() {
    let redactor = Redactor::new();
    for value in ["true", "", " \n", "admin"] {
        redactor.register(value);
    }
    for text in [
        "true admin",
        "token: expired",
        "the password: required.",
        "basic authentication failed, bearer authentication missing",
        "https://api.example.com:6443/api/v1?watch=true",
        "automountServiceAccountToken: false",
        "uid 7b1f2c9e-0f7b-4a57-9f0e-2d7a6d0a8a11",
        "registry.redhat.io/x@sha256:0123456789abcdef0123456789abcdef",
        "nvidia-driver-daemonset-token-secret is missing",
    ] {
        assert_eq!(redactor.text(text), text);
    }
}

#[test]
fn shapes_of_secrets_go_unasked() {
    let redactor = Redactor::new();
    for (text, clean) in [
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ("sent bearer sha256~abcdefghijklmnopqrstuvwxyz0123456789", "sent bearer ***"),
        ("git clone https://bob:s3cret@github.com/x", "git clone https://bob:***@github.com/x"),
        ("password=Sup3rSecret&x=1", "password=***&x=1"),
        ("{\"token\": \"abcDEF123\"}", "{\"token\": \"***\"}"),
        ("{\\\"token\\\":\\\"abcDEF123\\\"}", "{\\\"token\\\":\\\"***\\\"}"),
        (r#"{"auths":{"quay.io":{"auth":"cHVsbDpwdWxs"}}}"#, r#"{"auths":{"quay.io":{"auth":"***"}}}"#),
        (r#"config: "{\"auth\":\"cHVsbDpwdWxs\"}""#, r#"config: "{\"auth\":\"***\"}""#),
        ("client-key-data: LS0tLS1CRUdJTg==", "client-key-data: ***"),
        ("password=hunter", "password=***"),
        ("{\"password\": \"hunter\"}", "{\"password\": \"***\"}"),
        ("login --password Sup3rSecret now", "login --password *** now"),
        ("jwt eyJhbGciOi.eyJpc3MiOi.sig-x_y!", "jwt ***!"),
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY----- b",
            "a -----BEGIN RSA PRIVATE KEY-----*** b",
        ),
        ("cut -----BEGIN PRIVATE KEY-----\nMIIEabc", "cut -----BEGIN PRIVATE KEY-----***"),
    ] {
        assert_eq!(redactor.text(text), clean, "{text}");
    }
}

#[test]
fn parts_of_compound_files_go() {
    let pull_secret =
        json!({"auths": {"quay.io": {"auth": STANDARD.encode("robot:hidden-pass"), "email": "me@example.com"}}});
    let kubeconfig = "apiVersion: v1\nclusters:\n- cluster:\n    server: https://api.example.com:6443\nusers:\n- name: admin\n  user:\n    token: tok-0123456789\n    client-key-data: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCkFCQ0RFRkdISUpLTE1OT1AKLS0tLS1FTkQgUFJJVkFURSBLRVktLS0tLQo=\n";
    let redactor = Redactor::new();
    redactor.register(pull_secret.to_string());
    redactor.register(kubeconfig);
    redactor.register("[default]\nregion = us-east-1\naws_secret_access_key = wJalrXUtnFEMI\n");
    let seen = "hidden-pass tok-0123456789 ABCDEFGHIJKLMNOP wJalrXUtnFEMI";
    assert_eq!(redactor.text(seen), "*** *** *** ***");
    let plain = "https://api.example.com:6443 us-east-1 me@example.com quay.io apiVersion: v1";
    assert_eq!(redactor.text(plain), plain);
}

#[test]
fn lines_of_an_entitlement_go_one_by_one_and_cut_short() {
    let line = "MIIEowIBAAKCAQEAx0abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST";
    let pem = format!("-----BEGIN CERTIFICATE-----\n{line}\n{line}\n-----END CERTIFICATE-----\n");
    let redactor = knowing(&pem);
    assert_eq!(redactor.text(&format!("  | {line}")), "  | ***");
    assert_eq!(redactor.text(&line[..40]), "***");
    let encoded = STANDARD.encode(&pem);
    assert_eq!(redactor.text(&encoded), "***");
    let wrapped: Vec<String> =
        encoded.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    for line in wrapped.iter().filter(|line| line.len() == 76) {
        assert_eq!(redactor.text(line), "***");
    }
}

#[test]
fn json_keeps_its_shape() {
    let redactor = knowing("quo\"te\\d");
    let mut value = json!({
        "kind": "Secret", "metadata": {"name": "s", "uid": "u"},
        "data": {"ca.crt": "YWJj", "n": 1},
    });
    assert!(redactor.json(&mut value));
    assert_eq!(value["data"], json!({"ca.crt": "*** (4 bytes)", "n": 1}));
    let mut value = json!({
        "env": [{"name": "DB_PASSWORD", "value": "short"}, {"name": "MODE", "value": "fast"}],
        "quo\"te\\d": ["x quo\"te\\d y"],
        "password": "",
        "token": {"a": "b"},
    });
    assert!(redactor.json(&mut value));
    assert_eq!(
        value,
        json!({
            "env": [{"name": "DB_PASSWORD", "value": "***"}, {"name": "MODE", "value": "fast"}],
            "password": "",
            "token": {"a": "b"},
            "***": ["x *** y"],
        })
    );
}

#[test]
fn the_password_of_a_url_goes_without_the_scheme_as_well() {
    let kubeconfig = knowing("clusters:\n- cluster: {server: \"https://bob:s3cret-pw@api:6443\"}\n");
    let proxy = Redactor::new();
    proxy.url("http://bob:s3cret-pw@proxy:3128");
    for redactor in [&kubeconfig, &proxy] {
        assert_eq!(
            redactor.text("pooling for (\"https\", bob:s3cret-pw@api:6443)"),
            "pooling for (\"https\", bob:***@api:6443)"
        );
        assert_eq!(redactor.text("bob at api:6443"), "bob at api:6443");
    }
}
