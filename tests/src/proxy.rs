//! A TCP proxy on loopback that a test can make misbehave: everything between two processes that is not the processes.

use std::net::SocketAddr;
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
}

/// The proxy; it ends when this is dropped.
pub struct Proxy {
    addr: SocketAddr,
    server: watch::Sender<SocketAddr>,
    weather: watch::Sender<Weather>,
    task: JoinHandle<()>,
}

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
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = *present.borrow();
                tokio::spawn(pass(client, server, seen.clone()));
            }
        });
        Proxy {
            addr,
            server,
            weather,
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
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(client: TcpStream, server: SocketAddr, mut weather: watch::Receiver<Weather>) {
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
    let there = copy(from_client, to_server, weather.clone(), Towards::Server);
    let back = copy(from_server, to_client, weather.clone(), Towards::Client);
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
) {
    let passes = |weather: &Weather| match weather {
        Weather::Fair | Weather::Slow(_) | Weather::Cut => true,
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
        if to.write_all(&bytes[..len]).await.is_err() {
            return;
        }
    }
}
