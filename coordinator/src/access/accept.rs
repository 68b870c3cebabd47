//! The door: takes connections in, bounds how many there are, and shakes hands with each in its own time.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;

use super::config::Limits;
use super::connection::{Connection, PREFACE, Wire};
use super::throttle::SharedThrottle;

/// Connections that are through the door and wait for the server.
const WAITING_MAX: usize = 64;
/// Rest after the system could not give a connection, which is mostly a lack of file descriptors.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// The connections, as the server takes them.
pub(crate) type Incoming = ReceiverStream<io::Result<Connection>>;

/// An open door.
pub(crate) struct Listening {
    /// Where it is.
    pub(crate) addr: SocketAddr,
    /// Who comes in.
    pub(crate) incoming: Incoming,
}

/// Opens the door. It closes when the server drops `incoming`.
pub(crate) async fn listen(addr: SocketAddr, tls: Option<TlsAcceptor>, limits: &Limits) -> io::Result<Listening> {
    let listener = TcpListener::bind(addr).await?;
    let addr = listener.local_addr()?;
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let door = Door {
        tls,
        handshake: limits.handshake(),
        idle: limits.idle(),
        places: Arc::new(Places {
            total_max: limits.connections_max,
            per_address_max: limits.connections_per_address_max,
            taken: Mutex::default(),
        }),
        rude: SharedThrottle::new(),
        sender,
    };
    tokio::spawn(door.accept(listener));
    Ok(Listening {
        addr,
        incoming: ReceiverStream::new(receiver),
    })
}

#[derive(Clone)]
struct Door {
    tls: Option<TlsAcceptor>,
    handshake: Duration,
    idle: Duration,
    places: Arc<Places>,
    /// Paces what is said of connections that are closed for how they behave.
    rude: SharedThrottle,
    sender: mpsc::Sender<io::Result<Connection>>,
}

impl Door {
    async fn accept(self, listener: TcpListener) {
        let (full, broken) = (SharedThrottle::new(), SharedThrottle::new());
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.sender.closed() => return,
            };
            match accepted {
                Ok((stream, peer)) => match Places::take(&self.places, peer.ip()) {
                    Some(place) => drop(tokio::spawn(self.clone().shake_hands(stream, peer, place))),
                    None => {
                        if let Some(left_out) = full.pass() {
                            tracing::warn!(%peer, left_out, "a connection was closed: there are too many");
                        }
                    }
                },
                Err(error) => {
                    if let Some(left_out) = broken.pass() {
                        tracing::error!(%error, left_out, "a connection could not be accepted");
                    }
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    async fn shake_hands(self, stream: TcpStream, peer: SocketAddr, place: Place) {
        let until = Instant::now() + self.handshake;
        let wire = match timeout_at(until, self.secure(stream)).await {
            Ok(Ok(wire)) => wire,
            Ok(Err(error)) => return self.tell_failure(peer, &error.to_string()),
            Err(_) => return self.tell_failure(peer, "it did not come to an end in time"),
        };
        let connection = Connection::new(wire, peer, place, until, self.idle, self.rude.clone());
        // A server that is gone takes nobody in.
        let _closed = self.sender.send(Ok(connection)).await;
    }

    fn tell_failure(&self, peer: SocketAddr, reason: &str) {
        if let Some(left_out) = self.rude.pass() {
            tracing::info!(%peer, reason, left_out, "a connection failed in its handshake");
        }
    }

    async fn secure(&self, mut stream: TcpStream) -> io::Result<Wire> {
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            return Ok(Wire::Plain(stream));
        };
        let mut beginning = [0; 3];
        let seen = stream.peek(&mut beginning).await?;
        if beginning[..seen] == PREFACE[..seen] && seen > 0 {
            stream.write_all(&insecure()).await?;
            stream.shutdown().await?;
            return Err(io::Error::other(
                "it speaks HTTP/2 without TLS; this coordinator is https://",
            ));
        }
        Ok(Wire::Tls(Box::new(tls.accept(stream).await?)))
    }
}

/// What a client without TLS is told on a port with TLS, in its own protocol: empty SETTINGS, then GOAWAY with
/// INADEQUATE_SECURITY (RFC 9113, 6.5, 6.8 and 7).
fn insecure() -> Vec<u8> {
    const ADVICE: &[u8] = b"this coordinator serves TLS: use https://";
    let mut frames = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    let length = (8 + ADVICE.len()) as u32;
    frames.extend_from_slice(&length.to_be_bytes()[1..]);
    frames.extend_from_slice(&[7, 0, 0, 0, 0, 0]);
    frames.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0xc]);
    frames.extend_from_slice(ADVICE);
    frames
}

/// The places for connections.
#[derive(Debug)]
struct Places {
    total_max: u32,
    per_address_max: u32,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    total: u32,
    by_address: HashMap<IpAddr, u32>,
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    fn take(places: &Arc<Places>, ip: IpAddr) -> Option<Place> {
        let address = neighbourhood(ip);
        let mut taken = places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = taken.by_address.get(&address).copied().unwrap_or_default();
        if taken.total >= places.total_max || of_address >= places.per_address_max {
            return None;
        }
        taken.total += 1;
        taken.by_address.insert(address, of_address + 1);
        Some(Place {
            places: Arc::clone(places),
            address,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.total -= 1;
        match taken.by_address.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(taken.by_address.remove(&self.address)),
        }
    }
}

/// The address that connections are counted by: of IPv6 the /64, which one machine has as a rule.
fn neighbourhood(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_in_all_and_by_address_and_come_back() {
        let places = Arc::new(Places {
            total_max: 3,
            per_address_max: 2,
            taken: Mutex::default(),
        });
        let take = |ip: &str| Places::take(&places, ip.parse().unwrap());
        let first = take("10.0.0.1").unwrap();
        let _second = take("::ffff:10.0.0.1").unwrap();
        assert!(take("10.0.0.1").is_none(), "two of one address");
        let _third = take("2001:db8::1").unwrap();
        assert!(take("2001:db8::2").is_none(), "three in all");
        drop(first);
        let _fourth = take("2001:db8::ffff").unwrap();
        assert!(take("2001:db8:0:1::1").is_none(), "three in all again");
        let taken = places.taken.lock().unwrap();
        assert_eq!((taken.total, taken.by_address.len()), (3, 2));
    }
}
