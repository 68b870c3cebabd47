//! A TCP proxy on loopback that a test can make misbehave: everything between two processes that is not the processes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Bytes pass.
    Fair,
    /// Every connection is cut, new ones are accepted and cut at once.
    Cut,
    /// Connections stay open and no byte passes either way.
    Silent,
    /// Bytes pass towards the server and none comes back.
    OneWay,
    /// Each piece arrives so much later.
    Slow(Duration),
    /// Bytes pass, and what connections that are made now send to the server is kept, to be delivered once more.
    Recorded,
}

/// The proxy; it ends when this is dropped.
pub struct Proxy {
    addr: SocketAddr,
    server: watch::Sender<SocketAddr>,
    weather: watch::Sender<Weather>,
    kept: Kept,
    task: JoinHandle<()>,
}

/// What each recorded connection has sent to the server.
type Kept = Arc<Mutex<Vec<Vec<u8>>>>;

#[derive(Clone, Copy)]
enum Towards {
    Server,
    Client,
}

impl Proxy {
    /// Stands before `server`, in fair weather.
    pub async fn start(server: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("a bound port");
        let (weather, seen) = watch::channel(Weather::Fair);
        let (server, present) = watch::channel(server);
        let kept = Kept::default();
        let keeping = Arc::clone(&kept);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = *present.borrow();
                tokio::spawn(pass(client, server, seen.clone(), Arc::clone(&keeping)));
            }
        });
        Proxy {
            addr,
            server,
            weather,
            kept,
            task,
        }
    }

    /// Where clients connect.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// New connections go to this server, for example to one that was started again.
    pub fn lead_to(&self, server: SocketAddr) {
        self.server.send_replace(server);
    }

    /// Changes the weather, for open connections too.
    pub fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }

    /// Delivers to the server once more what the newest recorded connection sent, over a connection of its own: those
    /// bytes, and the connection with the server's answers.
    pub async fn deliver_again(&self) -> (Vec<u8>, TcpStream) {
        let sent = self.kept.lock().expect("nobody panics with it").last().cloned();
        let sent = sent.expect("a connection was recorded");
        let server = *self.server.borrow();
        let mut server = TcpStream::connect(server).await.expect("the server listens");
        server.write_all(&sent).await.expect("the server reads");
        (sent, server)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(client: TcpStream, server: SocketAddr, mut weather: watch::Receiver<Weather>, kept: Kept) {
    if *weather.borrow() == Weather::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    // Without this each small answer would wait for an acknowledgement.
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("an open socket takes options");
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let place = (*weather.borrow() == Weather::Recorded).then(|| {
        let mut kept = kept.lock().expect("nobody panics with it");
        kept.push(Vec::new());
        kept.len() - 1
    });
    let keep = |bytes: &[u8]| {
        if let Some(place) = place {
            kept.lock().expect("nobody panics with it")[place].extend_from_slice(bytes);
        }
    };
    let there = copy(from_client, to_server, weather.clone(), Towards::Server, keep);
    let back = copy(from_server, to_client, weather.clone(), Towards::Client, |_| ());
    tokio::select! {
        () = there => {}
        () = back => {}
        _ = weather.wait_for(|weather| *weather == Weather::Cut) => {}
    }
}

/// Copies until either end is gone.
async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    towards: Towards,
    keep: impl Fn(&[u8]),
) {
    let passes = |weather: &Weather| match weather {
        Weather::Fair | Weather::Slow(_) | Weather::Recorded | Weather::Cut => true,
        Weather::OneWay => matches!(towards, Towards::Server),
        Weather::Silent => false,
    };
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let Ok(len @ 1..) = from.read(&mut bytes).await else {
            return;
        };
        let Ok(now) = weather.wait_for(passes).await.map(|weather| *weather) else {
            return;
        };
        if let Weather::Slow(by) = now {
            tokio::time::sleep(by).await;
        }
        keep(&bytes[..len]);
        if to.write_all(&bytes[..len]).await.is_err() {
            return;
        }
    }
}
