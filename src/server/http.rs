//! The HTTP listener on core 0: /healthz, /readyz, /metrics (Prometheus), /dump (JSON).
//!
//! hyper speaks the protocol; this file is the routes. Request heads are bounded by hyper's buffer
//! limit, bodies are not read at all.

use crate::config::MemoryBudget;
use crate::env::net::Listener;
use crate::env::process;
use crate::env::real::ring;
use crate::limits::{HTTP_CONNECTIONS_MAX, HTTP_DEADLINE, HTTP_HEAD_BYTES_MAX};
use crate::metrics::{CONTENT_TYPE, Dump};
use crate::session::Session;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE as CONTENT_TYPE_HEADER;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use serde_json::json;
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
            let dump = dump(&session, memory).await;
            typed(CONTENT_TYPE, dump.to_prometheus())
        }
        "/dump" => {
            let dump = dump(&session, memory).await;
            typed("application/json", format!("{:#}\n", dump.to_json()))
        }
        _ => text(
            StatusCode::NOT_FOUND,
            "there is /healthz, /readyz, /metrics and /dump\n",
        ),
    };
    Ok(response)
}

async fn dump(session: &Session, memory: MemoryBudget) -> Dump {
    let ring = ring::status();
    let layout = &session.router.layout;
    let cores = session.router.snapshots().await;
    Dump {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        unix_ms: process::unix_ms(),
        uptime_ms: process::uptime_ms(),
        process: json!({
            "pid": process::process_id(),
            "kernel": process::kernel_release(),
            "store": layout.cluster_id,
            "shards": layout.shards,
            "endpoints": layout.endpoints.len(),
            "memory": memory.json(),
            "io_uring": {
                "setup_wrapped": ring.setup_wrapped,
                "rings_tuned": ring.rings_tuned,
                "rings_refused": ring.rings_refused,
                "no_iowait": ring.no_iowait,
            },
        }),
        cores,
    }
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
