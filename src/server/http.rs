//! The HTTP listener on core 0: /healthz, /readyz, /metrics (Prometheus; with ?full every metric),
//! /dump (JSON).
//!
//! hyper speaks the protocol; this file is the routes. Request heads are bounded by hyper's buffer
//! limit, bodies are not read at all.

use super::dump;
use crate::config::MemoryBudget;
use crate::env::net::Listener;
use crate::limits::{HTTP_CONNECTIONS_MAX, HTTP_DEADLINE, HTTP_HEAD_BYTES_MAX};
use crate::metrics::{CONTENT_TYPE, Dump};
use crate::session::Session;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE as CONTENT_TYPE_HEADER;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

/// Accepts and serves HTTP connections until the listener is stopped.
pub async fn accept(session: Session, mut listener: Listener, memory: MemoryBudget) {
    let open = Rc::new(Cell::new(0usize));
    let clock = session.router.env.clock();
    loop {
        let conn = match listener.accept().await {
            Ok(Some(conn)) => conn,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "an HTTP connection could not be accepted");
                clock.sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        if open.get() >= HTTP_CONNECTIONS_MAX {
            continue;
        }
        open.set(open.get() + 1);
        let (session, open, clock) = (session.clone(), Rc::clone(&open), clock.clone());
        let env = session.router.env.clone();
        env.spawn("http connection", async move {
            let service = service_fn(|request| answer(session.clone(), memory, request));
            let serving = hyper::server::conn::http1::Builder::new()
                .max_buf_size(HTTP_HEAD_BYTES_MAX)
                .keep_alive(true)
                .serve_connection(conn, service);
            // A connection that dawdles is closed; scrapers come again.
            if let Some(Err(error)) = clock.deadline(HTTP_DEADLINE, serving).await {
                tracing::debug!(%error, "an HTTP connection failed");
            }
            open.set(open.get() - 1);
        });
    }
}

async fn answer(
    session: Session,
    memory: MemoryBudget,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    session.metrics().connections.http_requests.inc();
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return Ok(text(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET is served here\n",
        ));
    }
    let response = match request.uri().path() {
        "/healthz" => text(StatusCode::OK, "ok\n"),
        "/readyz" if session.stopping() => {
            text(StatusCode::SERVICE_UNAVAILABLE, "the broker is stopping\n")
        }
        "/readyz" => text(StatusCode::OK, "ready\n"),
        "/metrics" => {
            let full = is_full(request.uri().query());
            let render = move |dump: Dump| dump.to_prometheus(full);
            typed(CONTENT_TYPE, rendered(&session, memory, render).await)
        }
        "/dump" => {
            let render = |dump: Dump| format!("{}\n", dump.to_json());
            typed("application/json", rendered(&session, memory, render).await)
        }
        _ => text(
            StatusCode::NOT_FOUND,
            "there is /healthz, /readyz, /metrics, /metrics?full and /dump\n",
        ),
    };
    Ok(response)
}

/// Whether the whole of the metrics is asked for: `?full`, or `?full=1` of clients that must give a
/// value.
fn is_full(query: Option<&str>) -> bool {
    let mut words = query.unwrap_or_default().split('&');
    words.any(|word| matches!(word, "full" | "full=" | "full=1" | "full=true"))
}

/// The figures as text, made off this core.
async fn rendered(
    session: &Session,
    memory: MemoryBudget,
    render: impl FnOnce(Dump) -> String + Send + 'static,
) -> String {
    let dump = dump::gather(session, memory).await;
    let env = session.router.env.clone();
    env.spawn_blocking(move || render(dump)).await
}

fn text(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    response
}

fn typed(content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    let value = hyper::header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE_HEADER, value);
    response
}
