//! From a request to an answer: verb, faults, access, then the handler.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use kube::client::Body;
use serde_json::Value;
use tower::BoxError;

use super::{
    access::{self, User, service_account},
    apiservice,
    body::{self, ApiBody},
    connect,
    decode::Validation,
    delete, discovery, events,
    kinds::KindDef,
    logs, patch, protobuf, read, review,
    route::{Query, Route, Target},
    server::{Inner, State},
    status::{ApiError, Cause},
    subresource, table, virtual_, watch, write,
};
use crate::{
    apifault::{Asked, Outcome, Session, reset},
    store::object::Key,
};

/// A request to a served kind.
pub(super) struct Call {
    pub(super) user: Arc<User>,
    pub(super) verb: &'static str,
    pub(super) target: Target,
    pub(super) kind: Arc<KindDef>,
    pub(super) query: Query,
    pub(super) accept: String,
    pub(super) content_type: String,
    pub(super) agent: String,
    pub(super) path: String,
    pub(super) now: jiff::Timestamp,
    /// The minor version of Kubernetes to be.
    pub(super) minor: u32,
    /// What to do about fields that nobody knows.
    pub(super) validation: Validation,
    /// Whether a watch is to break in the middle of its first event.
    pub(super) half_event: bool,
    /// Whether the client wants the connection to become another one.
    pub(super) upgrade: bool,
    pub(super) body: Bytes,
    /// What the answer warns of.
    warnings: Mutex<Vec<String>>,
}

impl Call {
    /// The place that the path names.
    pub(super) fn key(&self) -> Key {
        Key::new(self.target.namespace.clone(), self.target.name.clone())
    }

    /// The `apiVersion` that the client speaks.
    pub(super) fn api_version(&self) -> String {
        self.kind.api_version(&self.target.version)
    }

    /// The field manager: as said, or the first word of the user agent.
    pub(super) fn manager(&self) -> String {
        let said = self.query.get("fieldManager");
        if !said.is_empty() {
            return said.to_owned();
        }
        let word = self.agent.split('/').next().unwrap_or_default();
        if word.is_empty() { "unknown".to_owned() } else { word.to_owned() }
    }

    /// Adds a warning to the answer.
    pub(super) fn warn(&self, text: &str) {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
    }

    /// The warnings so far, as the values of headers.
    fn warnings(&self) -> Vec<HeaderValue> {
        let texts = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        texts.iter().filter_map(|text| HeaderValue::from_str(&format!("299 - {text:?}")).ok()).collect()
    }

    /// Whether nothing is to be stored.
    pub(super) fn dry_run(&self) -> bool {
        self.query.get("dryRun") == "All"
    }

    /// The body as JSON; YAML is read when the content type says so.
    pub(super) fn json(&self) -> Result<Value, ApiError> {
        if self.content_type.contains("protobuf") {
            return protobuf::decode(&self.body);
        }
        let result = if self.content_type.contains("yaml") {
            serde_yaml::from_slice(&self.body).map_err(|error| error.to_string())
        } else {
            serde_json::from_slice(&self.body).map_err(|error| error.to_string())
        };
        result.map_err(|error| {
            ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: \
                 {error} ({})",
                self.kind.kind,
                String::from_utf8_lossy(&self.body).chars().take(32).collect::<String>()
            ))
        })
    }
}

fn header(headers: &HeaderMap, name: header::HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Who asks: whom the client shows to be, or whom that user may and wants to be taken for.
fn acting(inner: &Inner, user: Arc<User>, headers: &HeaderMap) -> Result<Arc<User>, ApiError> {
    let Some(name) = headers.get("impersonate-user").and_then(|value| value.to_str().ok()) else { return Ok(user) };
    let mut named = User::named(name);
    let groups: Vec<&str> =
        headers.get_all("impersonate-group").iter().filter_map(|value| value.to_str().ok()).collect();
    let asked = access::Asked { verb: "impersonate", ..access::Asked::default() };
    let state = inner.state();
    let whom = match service_account(name) {
        Some((namespace, name)) => access::Asked { plural: "serviceaccounts", namespace, name, ..asked },
        None => access::Asked { plural: "users", name, ..asked },
    };
    state.access.check(&state.store, &user, &whom)?;
    for (index, group) in groups.into_iter().enumerate() {
        state.access.check(&state.store, &user, &access::Asked { plural: "groups", name: group, ..asked })?;
        named.groups.retain(|own| own != group);
        named.groups.insert(index, group.to_owned());
    }
    tracing::trace!(user = user.name, name, "impersonation");
    Ok(Arc::new(named))
}

fn verb_of(method: &Method, route: &Route, query: &Query) -> &'static str {
    let Route::Target(target) = route else { return "get" };
    let whole = target.name.is_empty();
    match *method {
        Method::GET | Method::HEAD if query.flag("watch") => "watch",
        Method::GET | Method::HEAD if whole => "list",
        Method::GET | Method::HEAD => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if whole => "deletecollection",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// Answers one request. `session` is what a client in this process holds; those outside show theirs to whoever serves.
pub(super) async fn answer(
    inner: Arc<Inner>,
    user: Arc<User>,
    session: Option<Session>,
    request: Request<Body>,
) -> Result<Response<ApiBody>, BoxError> {
    let (parts, body) = request.into_parts();
    let user = match acting(&inner, user, &parts.headers) {
        Ok(user) => user,
        Err(error) => return Ok(body::error(&error)),
    };
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let route = Route::parse(parts.uri.path());
    let verb = verb_of(&parts.method, &route, &query);
    inner.state().counts.add(&user.name, verb);
    let asked = Asked { verb, path: parts.uri.path(), query: parts.uri.query().unwrap_or_default(), user: &user.name };
    let mut half_event = false;
    match inner.faults.decide(&asked, session) {
        None => {}
        Some(Outcome::HalfEvent) => half_event = true,
        Some(Outcome::Slow(delay)) => {
            tokio::select! {
                biased;
                error = inner.faults.restarted() => return Err(error.into()),
                () = inner.clock.sleep(delay) => {}
            }
        }
        Some(Outcome::Stalled) => return Err(inner.faults.restarted().await.into()),
        // A watch that is not answered is a watch that was not opened.
        Some(Outcome::Unanswered) if verb == "watch" => return Err(reset().into()),
        Some(Outcome::Unanswered) => {
            drop(perform(&inner, user, verb, route, query, &parts, body, false).await?);
            return Err(reset().into());
        }
        Some(Outcome::Conflict) => {
            if let Some(error) = conflict(&route) {
                return Ok(dated(&inner, body::error(&error)));
            }
        }
        Some(Outcome::Broken(error)) => return Err(error.into()),
        Some(Outcome::Refused(error)) => return Ok(dated(&inner, body::error(&error))),
    }
    let response = perform(&inner, user, verb, route, query, &parts, body, half_event).await?;
    Ok(dated(&inner, response))
}

/// What a write is told that somebody else's change overtook: of the object, or of the quota that a new one counts
/// against. Questions about access change nothing and cannot be overtaken.
fn conflict(route: &Route) -> Option<ApiError> {
    let Route::Target(target) = route else { return None };
    if review::is_review(target) {
        return None;
    }
    Some(if target.name.is_empty() {
        ApiError::stale(&crate::store::Resource::new("", "resourcequotas"), "rehearsal")
    } else {
        ApiError::stale(&crate::store::Resource::new(target.group.clone(), target.plural.clone()), &target.name)
    })
}

/// The answer with the server's time on it.
fn dated(inner: &Inner, mut response: Response<ApiBody>) -> Response<ApiBody> {
    let date = inner.clock.now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    if let Ok(date) = header::HeaderValue::try_from(date) {
        response.headers_mut().insert(header::DATE, date);
    }
    response
}

#[expect(clippy::too_many_arguments, reason = "the parts of one request, taken apart by the only caller")]
async fn perform(
    inner: &Arc<Inner>,
    user: Arc<User>,
    verb: &'static str,
    route: Route,
    query: Query,
    parts: &http::request::Parts,
    body: Body,
    half_event: bool,
) -> Result<Response<ApiBody>, BoxError> {
    let body = body.collect_bytes().await?;
    let result = match route {
        Route::Target(target) => {
            let call = resolve(inner, &user, verb, &query, target);
            match call {
                Ok(None) => {
                    return Ok(review::answer(inner, &user, &Route::parse(parts.uri.path()), &parts.method, &body));
                }
                Ok(Some((target, kind))) => {
                    let call = Call {
                        user,
                        verb,
                        target,
                        kind,
                        accept: header(&parts.headers, header::ACCEPT),
                        content_type: header(&parts.headers, header::CONTENT_TYPE),
                        agent: header(&parts.headers, header::USER_AGENT),
                        path: parts.uri.path().to_owned(),
                        now: inner.clock.now(),
                        minor: inner.version.minor,
                        validation: validation(inner.version.minor, query.get("fieldValidation")),
                        upgrade: parts.headers.contains_key(header::UPGRADE),
                        query,
                        half_event,
                        body,
                        warnings: Mutex::default(),
                    };
                    handle(inner, call).await
                }
                Err(error) => Err(error),
            }
        }
        route => {
            let asked = access::Asked { verb, url: parts.uri.path(), ..access::Asked::default() };
            let allowed = {
                let state = inner.state();
                state.access.check(&state.store, &user, &asked)
            };
            allowed.and_then(|()| apiservice::check(inner, &route)).and_then(|()| {
                let answer = discovery::answer(inner, &route, &header(&parts.headers, header::ACCEPT));
                match (&route, answer) {
                    (Route::Group(name), Err(error)) => {
                        apiservice::group(inner, name).map(|group| body::json(200, &group)).ok_or(error)
                    }
                    (route, answer) => answer.map(|answer| apiservice::amend(inner, route, answer)),
                }
            })
        }
    };
    Ok(result.unwrap_or_else(|error| body::error(&error)))
}

/// The one name that a field selector asks for.
fn named_by(query: &Query) -> &str {
    let mut terms = query.get("fieldSelector").split(',');
    let name = terms.find_map(|term| term.strip_prefix("metadata.name="));
    name.map_or("", |name| name.trim_start_matches('='))
}

/// Finds the kind and checks the user's access. `None` stands for the review kinds, which store nothing.
fn resolve(
    inner: &Inner,
    user: &User,
    verb: &str,
    query: &Query,
    target: Target,
) -> Result<Option<(Target, Arc<KindDef>)>, ApiError> {
    let state = inner.state();
    // Who may not ask is not told what there is.
    if !verb.is_empty() {
        state.access.check(&state.store, user, &access::Asked::of(verb, &target, named_by(query)))?;
    }
    if review::is_review(&target) {
        return Ok(None);
    }
    if let Some(error) = apiservice::refusal(&state, &target) {
        return Err(error);
    }
    let resource = crate::store::Resource::new(target.group.clone(), target.plural.clone());
    let Some(kind) = state.kinds.get(&resource).filter(|kind| kind.version(&target.version).is_some()) else {
        let own = state.kinds.iter().any(|kind| kind.group == target.group && !kind.custom);
        return Err(if own { ApiError::no_such_resource() } else { ApiError::no_such_path() });
    };
    if verb.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    if !kind.namespaced && !target.namespace.is_empty()
        || kind.namespaced && target.namespace.is_empty() && !target.name.is_empty()
    {
        return Err(ApiError::no_such_resource());
    }
    if verb == "create" && !target.name.is_empty() && target.subresource.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let kind = Arc::clone(kind);
    Ok(Some((target, kind)))
}

/// A write is for real or a dry run, and nothing else.
fn check_dry_run(call: &Call) -> Result<(), ApiError> {
    let said = call.query.get("dryRun");
    let kind = match call.verb {
        "create" => "CreateOptions",
        "update" => "UpdateOptions",
        "patch" => "PatchOptions",
        "delete" | "deletecollection" => "DeleteOptions",
        _ => return Ok(()),
    };
    if ["", "All"].contains(&said) {
        return Ok(());
    }
    let cause = Cause::unsupported("dryRun", &said.into(), &["All".to_owned()]);
    Err(ApiError::invalid("meta.k8s.io", kind, "", vec![cause]))
}

async fn handle(inner: &Arc<Inner>, call: Call) -> Result<Response<ApiBody>, ApiError> {
    check_dry_run(&call)?;
    if events::is_newer(&call) {
        let call = events::older(inner, call)?;
        return serve(inner, call).await.map(events::newer).map_err(events::name_error);
    }
    serve(inner, call).await
}

async fn serve(inner: &Arc<Inner>, call: Call) -> Result<Response<ApiBody>, ApiError> {
    if call.kind.virtual_ {
        return virtual_::answer(inner, &call);
    }
    if !call.target.subresource.is_empty() {
        return match (call.target.plural.as_str(), call.target.subresource.as_str()) {
            ("pods", "log") => logs::answer(inner, call),
            ("pods", "exec" | "attach" | "portforward") if ["get", "create"].contains(&call.verb) => {
                connect::answer(inner, &call)
            }
            _ => subresource::answer(inner, &call),
        };
    }
    match call.verb {
        "watch" => watch::answer(inner, call).await,
        "list" => read::list(inner, &call).await,
        "get" => read::get(inner, &call),
        "create" => with_state(inner, &call, write::create).map(|object| written(&call, &object, true)),
        "update" => with_state(inner, &call, write::update).map(|(object, created)| written(&call, &object, created)),
        "patch" => with_state(inner, &call, patch::patch).map(|(object, created)| written(&call, &object, created)),
        "delete" => with_state(inner, &call, delete::delete).map(|object| body::json(200, &object)),
        "deletecollection" => with_state(inner, &call, delete::delete_collection).map(|list| body::json(200, &list)),
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// The answer to a write, with its warnings.
fn written(call: &Call, object: &Value, created: bool) -> Response<ApiBody> {
    let mut response = body::json(if created { 201 } else { 200 }, &present(call, object));
    for warning in call.warnings() {
        response.headers_mut().append(header::WARNING, warning);
    }
    response
}

/// Fields that nobody knows are let through in silence up to 1.24, and warned of from then on.
fn validation(minor: u32, asked: &str) -> Validation {
    match asked {
        _ if minor < 25 => Validation::Ignore,
        "Strict" => Validation::Strict,
        "Ignore" => Validation::Ignore,
        _ => Validation::Warn,
    }
}

/// Runs a handler under the lock and wakes the housekeeper when it left work.
pub(super) fn with_state<T>(
    inner: &Inner,
    call: &Call,
    handler: impl FnOnce(&Inner, &mut State, &Call) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let mut state = inner.state();
    let result = handler(inner, &mut state, call);
    if !state.jobs.is_empty() {
        inner.wake.notify_one();
    }
    result
}

/// The object in the version and form that the client asked for.
pub(super) fn present(call: &Call, object: &Value) -> Value {
    table::shape(call, &read::in_version(call, object))
}
