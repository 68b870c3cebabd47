//! Follows the status over lost connections and restarts of the coordinator.

use std::time::Duration;

use tengen_proto::v1::{RunStatus, WatchStatusRequest};
use tengen_service::backoff::Backoff;
use tokio::sync::mpsc;
use tonic::Code;

use crate::client::{self, CoordinatorArgs, Reached, explain};

/// Something to show.
#[derive(Debug)]
pub(super) enum News {
    /// How the run is doing.
    Status(Box<RunStatus>),
    /// The coordinator is away, and why; it is tried on.
    Lost(String),
    /// The coordinator refuses us for good.
    Refused(anyhow::Error),
}

/// Sends news until nobody listens or the coordinator refuses. `run` stays alive meanwhile: it may be a reader of ours.
pub(super) async fn follow(coordinator: CoordinatorArgs, run: Reached, interval: Duration, news: mpsc::Sender<News>) {
    let mut backoff = Backoff::default();
    let mut resume_token = String::new();
    loop {
        let ended = follow_once(&coordinator, &run, interval, &mut resume_token, &mut backoff, &news).await;
        let word = match ended {
            Ok(()) => return,
            Err(error) => match error.downcast_ref::<tonic::Status>() {
                Some(status) if refuses(status) => News::Refused(explain(status)),
                Some(status) => News::Lost(status.message().to_owned()),
                None => News::Lost(format!("{error:#}")),
            },
        };
        let refused = matches!(word, News::Refused(_));
        if news.send(word).await.is_err() || refused {
            return;
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
}

fn refuses(status: &tonic::Status) -> bool {
    matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied | Code::Unimplemented | Code::InvalidArgument
    )
}

/// Follows over one connection; returns when nobody listens.
async fn follow_once(
    coordinator: &CoordinatorArgs,
    run: &Reached,
    interval: Duration,
    resume_token: &mut String,
    backoff: &mut Backoff,
    news: &mpsc::Sender<News>,
) -> anyhow::Result<()> {
    let mut client = match run.is_our_reader() {
        true => run.runs()?,
        // Looked up anew each time: a coordinator that is started again may listen elsewhere.
        false => client::runs(client::connect(
            &coordinator.served_url()?,
            &coordinator.credentials()?,
        )?),
    };
    let request = WatchStatusRequest {
        interval_ms: u32::try_from(interval.as_millis()).unwrap_or(u32::MAX),
        resume_token: resume_token.clone(),
    };
    let mut statuses = client.watch_status(request).await?.into_inner();
    while let Some(status) = statuses.message().await? {
        *backoff = Backoff::default();
        resume_token.clone_from(&status.resume_token);
        if news.send(News::Status(Box::new(status))).await.is_err() {
            return Ok(());
        }
    }
    anyhow::bail!("the coordinator ended the stream")
}
