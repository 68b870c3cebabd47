//! One accepted connection: it holds its place among the others, and ends when its handshake or its next request does
//! not come.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::accept::Place;
use super::throttle::SharedThrottle;

/// The beginning of every HTTP/2 connection.
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The other side of a connection, as requests know it.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    addr: SocketAddr,
    activity: Arc<Activity>,
}

/// What goes on over a connection.
#[derive(Debug)]
struct Activity {
    began: Instant,
    /// Requests that are served.
    open: AtomicUsize,
    /// When the last one ended, milliseconds since `began`.
    last_ms: AtomicU64,
}

/// A request is served while this lives.
#[derive(Debug)]
pub(crate) struct InUse(Arc<Activity>);

impl Peer {
    /// Notes that a request is served.
    pub(crate) fn in_use(&self) -> InUse {
        self.activity.open.fetch_add(1, Ordering::Relaxed);
        InUse(Arc::clone(&self.activity))
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.last_ms.store(self.0.now_ms(), Ordering::Relaxed);
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Activity {
    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// When the connection has been idle for so long; never while a request is served.
    fn idle_at(&self, idle: Duration) -> Option<Instant> {
        let open = self.open.load(Ordering::Relaxed);
        (open == 0).then(|| self.began + Duration::from_millis(self.last_ms.load(Ordering::Relaxed)) + idle)
    }
}

/// Bytes in and out.
pub(super) enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that is held to its time.
pub(crate) struct Connection {
    wire: Wire,
    peer: Peer,
    /// Bytes of the preface that are still to come.
    preface_left: usize,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    /// Paces what is said when it is closed.
    rude: SharedThrottle,
    _place: Place,
}

impl Connection {
    /// A connection whose handshake must be over at `handshake_until`.
    pub(super) fn new(
        wire: Wire,
        addr: SocketAddr,
        place: Place,
        handshake_until: Instant,
        idle: Duration,
        rude: SharedThrottle,
    ) -> Connection {
        let activity = Arc::new(Activity {
            began: Instant::now(),
            open: AtomicUsize::new(0),
            last_ms: AtomicU64::new(0),
        });
        Connection {
            wire,
            peer: Peer { addr, activity },
            preface_left: PREFACE.len(),
            idle,
            timer: Box::pin(tokio::time::sleep_until(handshake_until)),
            rude,
            _place: place,
        }
    }

    /// Pending while there is time left; an error when it has passed.
    fn poll_time(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            if self.preface_left > 0 {
                return Poll::Ready(self.timed_out("no HTTP/2 handshake in time"));
            }
            let now = Instant::now();
            match self.peer.activity.idle_at(self.idle) {
                Some(at) if at <= now => return Poll::Ready(self.timed_out("no request for a long time")),
                Some(at) => self.timer.as_mut().reset(at),
                None => self.timer.as_mut().reset(now + self.idle),
            }
        }
    }

    fn timed_out(&self, what: &str) -> io::Error {
        if let Some(left_out) = self.rude.pass() {
            tracing::info!(peer = %self.peer.addr, reason = what, left_out, "connection closed");
        }
        io::Error::new(io::ErrorKind::TimedOut, what.to_owned())
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(error) = self.poll_time(context) {
            return Poll::Ready(Err(error));
        }
        let before = buffer.filled().len();
        let read = match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, buffer),
        };
        if self.preface_left > 0 {
            self.preface_left = self.preface_left.saturating_sub(buffer.filled().len() - before);
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_flush(context),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.wire {
            Wire::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Wire::Tls(stream) => Pin::new(stream.as_mut()).poll_shutdown(context),
        }
    }
}
