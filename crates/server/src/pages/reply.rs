//! What a request is answered with: a body, and the headers that keep it in its place.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

const TEXT: &str = "text/plain; charset=utf-8";

/// Nothing may run or be loaded, and nobody may frame it.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// The page takes what it shows from here only, and makes no markup of text.
const OWN: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                   img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                   frame-ancestors 'none'; require-trusted-types-for 'script'";

pub(super) type Page = Response<Content>;

/// A body: known as a whole, or sent as it comes.
#[derive(Debug)]
pub(super) enum Content {
    Whole(Full<Bytes>),
    Events(mpsc::Receiver<Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(whole) => Pin::new(whole).poll_frame(context),
            Self::Events(events) => events
                .poll_recv(context)
                .map(|event| event.map(|event| Ok(Frame::data(event)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => whole.size_hint(),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// A line for people.
pub(super) fn text(status: StatusCode, text: &str) -> Page {
    whole(status, TEXT, text.to_owned())
}

/// Numbers and names for the page.
pub(super) fn json(value: &Value) -> Page {
    json_text(value.to_string())
}

/// The same, already written.
pub(super) fn json_text(text: String) -> Page {
    whole(StatusCode::OK, "application/json", text)
}

/// A part of the page, which may load the others.
pub(super) fn own(kind: &'static str, body: &'static str) -> Page {
    page(
        StatusCode::OK,
        kind,
        OWN,
        Content::Whole(Full::new(Bytes::from_static(body.as_bytes()))),
    )
}

/// Events as they come.
pub(super) fn stream(events: mpsc::Receiver<Bytes>) -> Page {
    let content = Content::Events(events);
    page(StatusCode::OK, "text/event-stream", NOTHING, content)
}

/// Any other body.
pub(super) fn whole(status: StatusCode, kind: &'static str, body: String) -> Page {
    page(
        status,
        kind,
        NOTHING,
        Content::Whole(Full::new(Bytes::from(body))),
    )
}

fn page(status: StatusCode, kind: &'static str, policy: &'static str, content: Content) -> Page {
    let mut page = Response::new(content);
    *page.status_mut() = status;
    let headers = page.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", policy),
        ("cross-origin-resource-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    page
}
