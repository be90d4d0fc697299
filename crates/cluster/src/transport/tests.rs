//! Requests in bad times, against a server of our own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt as _;
use serde_json::json;
use toolbox_engine::Clock;

use super::*;
use crate::testing::{Script, client};

#[tokio::test(start_paused = true)]
async fn credentials_that_expire_are_read_again_once_for_all_requests() {
    let (old, new) = (Script::new(), Script::new());
    old.answer(|_| Ok((401, json!({"message": "Unauthorized"}))));
    new.answer(|_| Ok((200, json!({}))));
    let reloads = Arc::new(AtomicU32::new(0));
    let count = reloads.clone();
    let reload: Reload = Box::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
        let client = client(&new);
        async move { Ok(client) }.boxed()
    });
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let patience = Patience::default();
    let transport = Transport::new(client(&old), Some(reload), clock, patience, "server".to_owned(), None);
    let call = Call::read("get", "/api/v1/nodes/a".to_owned(), ObjectRef::thing("test", "x"));
    let (one, two) = tokio::join!(transport.call(&call), transport.call(&call));
    assert_eq!((one.unwrap().status, two.unwrap().status), (200, 200));
    assert_eq!(reloads.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_refusal_is_an_error_that_names_the_user_and_not_a_timeout() {
    let script = Script::new();
    script.answer(|_| Ok((401, json!({"message": "Unauthorized"}))));
    let again = script.clone();
    let reload: Reload = Box::new(move || {
        let client = client(&again);
        async move { Ok(client) }.boxed()
    });
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let transport = Transport::new(
        client(&script),
        Some(reload),
        clock,
        Patience::default(),
        "s".to_owned(),
        Some("me".to_owned()),
    );
    let call = Call::read("get", "/api/v1/nodes/a".to_owned(), ObjectRef::thing("test", "x"));
    let error = transport.call(&call).await.unwrap_err();
    assert_eq!(error.to_string(), "not authenticated as `me`: Unauthorized");
    assert_eq!(transport.clock.elapsed(), Duration::ZERO);
}

#[test]
fn warnings_are_unquoted() {
    assert_eq!(warning(r#"299 - "unknown field \"spec.x\"""#).as_deref(), Some(r#"unknown field "spec.x""#));
    assert_eq!(warning("nonsense"), None);
}
