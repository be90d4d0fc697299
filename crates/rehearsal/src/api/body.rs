//! Response bodies: whole ones and streams.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream::BoxStream};
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use serde_json::Value;
use tower::BoxError;

use super::status::ApiError;

/// The body of a response.
pub enum ApiBody {
    /// All at once.
    Whole(Option<Bytes>),
    /// Piece by piece; an error means that the connection broke.
    Stream(BoxStream<'static, Result<Bytes, BoxError>>),
}

impl std::fmt::Debug for ApiBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Whole(_) => "ApiBody::Whole",
            Self::Stream(_) => "ApiBody::Stream",
        })
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(stream) => {
                Pin::new(stream).poll_next(cx).map(|item| item.map(|result| result.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

fn with_type(code: u16, kind: &'static str, body: ApiBody) -> Response<ApiBody> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A JSON answer.
pub(super) fn json(code: u16, value: &Value) -> Response<ApiBody> {
    with_type(code, "application/json", ApiBody::Whole(Some(value.to_string().into())))
}

/// A plain-text answer.
pub(super) fn text(code: u16, text: impl Into<Bytes>) -> Response<ApiBody> {
    with_type(code, "text/plain; charset=utf-8", ApiBody::Whole(Some(text.into())))
}

/// A stream of JSON lines.
pub(super) fn json_stream(stream: BoxStream<'static, Result<Bytes, BoxError>>) -> Response<ApiBody> {
    with_type(200, "application/json", ApiBody::Stream(stream))
}

/// A stream of plain text.
pub(super) fn text_stream(stream: BoxStream<'static, Result<Bytes, BoxError>>) -> Response<ApiBody> {
    with_type(200, "text/plain", ApiBody::Stream(stream))
}

/// Changes every JSON value that a response holds: its body, or each line of a stream.
pub(super) fn rewrite(
    response: Response<ApiBody>,
    change: impl Fn(Value) -> Value + Send + 'static,
) -> Response<ApiBody> {
    let change = move |bytes: Bytes| match serde_json::from_slice(&bytes) {
        Ok(value) => Bytes::from(change(value).to_string()),
        Err(_) => bytes,
    };
    response.map(|body| match body {
        ApiBody::Whole(bytes) => ApiBody::Whole(bytes.map(change)),
        ApiBody::Stream(stream) => {
            let lines = move |chunk: Bytes| {
                let mut out = Vec::with_capacity(chunk.len());
                for line in chunk.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    out.extend_from_slice(&change(Bytes::copy_from_slice(line)));
                    out.push(b'\n');
                }
                Bytes::from(out)
            };
            ApiBody::Stream(stream.map(move |chunk| chunk.map(&lines)).boxed())
        }
    })
}

/// A refusal.
pub fn error(error: &ApiError) -> Response<ApiBody> {
    let mut response = if error.is_plain() {
        text(error.code, format!("{}\n", error.message))
    } else {
        json(error.code, &error.to_status())
    };
    if let Some(seconds) = error.retry_after() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
