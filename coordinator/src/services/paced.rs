//! Answers that leave in pieces: the next piece is made once the one before has gone to the operating system.
//!
//! Without this the HTTP/2 layer takes what an answer gives until 400 KiB of it wait for a slow reader (the default of hyper,
//! which tonic does not let us change), and every slow reader costs that much. Answers that many read at the same time and
//! that are long go through here.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower_service::Service;

/// A service whose answers leave in pieces.
#[derive(Clone, Debug)]
pub(crate) struct Paced<S>(pub(crate) S);

impl<S: NamedService> NamedService for Paced<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Paced<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.0.call(request);
        Box::pin(async move { Ok(answer.await?.map(|body| Body::new(Piecewise::new(body)))) })
    }
}

/// An answer of which one piece is on its way at most.
struct Piecewise {
    body: Body,
    turns: PollSemaphore,
    /// The right to make the next piece, once the one before has gone.
    turn: Option<OwnedSemaphorePermit>,
}

/// A piece that is on its way; dropped when all of it has gone to the operating system.
struct Piece {
    bytes: Bytes,
    _turn: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Piecewise {
    fn new(body: Body) -> Piecewise {
        Piecewise {
            body,
            turns: PollSemaphore::new(Arc::new(Semaphore::new(1))),
            turn: None,
        }
    }
}

impl HttpBody for Piecewise {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if this.turn.is_none() {
            this.turn = ready!(this.turns.poll_acquire(context));
        }
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        let Some(turn) = this.turn.take() else {
            // The turns are ours alone and never end.
            return Poll::Ready(frame);
        };
        let on_its_way = |bytes| Bytes::from_owner(Piece { bytes, _turn: turn });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(on_its_way))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    #[tokio::test]
    async fn a_piece_is_made_once_the_one_before_has_gone() {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let pieces = (0..3u8).map(move |number| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Status>(Frame::data(Bytes::from(vec![number; 10])))
        });
        let mut body = Piecewise::new(Body::new(StreamBody::new(tokio_stream::iter(pieces))));
        for number in 0..3u8 {
            let piece = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert_eq!(piece, vec![number; 10]);
            let made_so_far = made.load(Ordering::Relaxed);
            let is_pending = poll_fn(|context| {
                let next = Pin::new(&mut body).poll_frame(context);
                Poll::Ready(next.is_pending())
            });
            assert!(is_pending.await, "piece {number} is still on its way");
            assert_eq!(made.load(Ordering::Relaxed), made_so_far);
            // A part of it keeps it: the HTTP/2 layer cuts pieces to its frames.
            let rest = piece.slice(5..);
            drop(piece);
            let is_pending = poll_fn(|context| Poll::Ready(Pin::new(&mut body).poll_frame(context).is_pending()));
            assert!(is_pending.await, "half of piece {number} is still on its way");
            drop(rest);
        }
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn what_waits_for_a_piece_to_go_is_woken_when_it_has() {
        let pieces = [[1u8; 4], [2; 4]].map(|piece| Ok::<_, Status>(Frame::data(Bytes::from(piece.to_vec()))));
        let mut body = Piecewise::new(Body::new(StreamBody::new(tokio_stream::iter(pieces))));
        let first = body.frame().await.unwrap().unwrap();
        let waiting = tokio::spawn(async move { body.frame().await.unwrap().unwrap().into_data().unwrap() });
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(waiting.await.unwrap(), vec![2; 4]);
    }
}
