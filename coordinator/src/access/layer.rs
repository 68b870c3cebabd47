//! The gate before every service: it asks for the token, looks up the role, counts the request, and cuts what goes on
//! when the token ends.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::body::Body;
use tonic::{Code, Status};
use tower_layer::Layer;
use tower_service::Service;

use super::book::{Access, Caller};
use super::connection::{InUse, Peer};
use super::role;
use super::unfinished::Counted;
use crate::services::errors;

/// Puts the gate before a service.
#[derive(Clone, Debug)]
pub(crate) struct AccessLayer(pub(crate) Arc<Access>);

impl<S> Layer<S> for AccessLayer {
    type Service = Gate<S>;

    fn layer(&self, inner: S) -> Gate<S> {
        Gate {
            access: Arc::clone(&self.0),
            inner,
        }
    }
}

/// A service behind the gate.
#[derive(Clone, Debug)]
pub(crate) struct Gate<S> {
    access: Arc<Access>,
    inner: S,
}

impl<S> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let caller = match admit(&self.access, &request) {
            Ok(caller) => caller,
            Err(status) => {
                self.access.note_refused(&status);
                return Box::pin(async move { Ok(status.into_http()) });
            }
        };
        let access = Arc::clone(&self.access);
        let in_use = request.extensions().get::<Peer>().map(Peer::in_use);
        request.extensions_mut().insert(caller.clone());
        let (unfinished, bytes_max) = (access.unfinished(&caller), access.limits().unfinished_bytes_max);
        let request = request.map(|body| Body::new(Counted::new(body, unfinished, bytes_max.into())));
        // The clone that is ready serves; the other one takes its place.
        let fresh = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, fresh);
        Box::pin(async move {
            let mut ended: Ended = Box::pin(caller.ended());
            let answer = inner.call(request);
            tokio::select! {
                biased;
                status = &mut ended => {
                    access.note_refused(&status);
                    Ok(status.into_http())
                }
                answer = answer => answer.map(|answer| {
                    access.note_answer(answer.headers());
                    answer.map(|body| Body::new(Watched {
                        body: Some(body),
                        ended,
                        access,
                        _in_use: in_use,
                    }))
                }),
            }
        })
    }
}

fn admit(access: &Access, request: &Request<Body>) -> Result<Caller, Status> {
    let path = request.uri().path();
    let Some(needs) = role::needs(path) else {
        // The path is a stranger's text.
        let path: String = path.chars().take(100).collect();
        let message = format!("this build (tengen {}) has no call {path:?}", tengen_service::BUILD);
        return Err(errors::refusal(Code::Unimplemented, "NO_SUCH_CALL", message));
    };
    let authorization = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    access.admit(authorization, needs)
}

type Ended = Pin<Box<dyn Future<Output = Status> + Send>>;

/// An answer that ends with its caller's token.
struct Watched {
    /// Taken once the answer has ended.
    body: Option<Body>,
    ended: Ended,
    access: Arc<Access>,
    _in_use: Option<InUse>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(body) = self.body.as_mut() else {
            return Poll::Ready(None);
        };
        // An answer that is whole has nothing left to cut.
        if !body.is_end_stream()
            && let Poll::Ready(status) = self.ended.as_mut().poll(context)
        {
            self.body = None;
            self.access.note_refused(&status);
            let mut trailers = HeaderMap::new();
            return Poll::Ready(Some(
                status.add_header(&mut trailers).map(|()| Frame::trailers(trailers)),
            ));
        }
        let frame = match self.body.as_mut() {
            Some(body) => ready!(Pin::new(body).poll_frame(context)),
            None => None,
        };
        if let Some(Ok(frame)) = &frame
            && let Some(trailers) = frame.trailers_ref()
        {
            self.access.note_answer(trailers);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
