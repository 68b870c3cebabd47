//! How the command finds and reaches a coordinator.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use tengen_proto::v1::admin_service_client::AdminServiceClient;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_service::channel::{self, Channel, MESSAGE_BYTES_MAX};
use tengen_service::credentials::{ConnectArgs, Credentials};
use tengen_service::lock;

use crate::at_rest::Reader;

/// Where `tengen up` listens unless told otherwise.
pub(crate) const LISTEN_DEFAULT: &str = "127.0.0.1:7300";

/// Name of the file in a run's data folder that holds the coordinator's address while it runs.
pub(crate) const ADDRESS_FILE: &str = "coordinator.addr";

/// How long a command waits for an answer to begin: the coordinator itself gives up requests before.
const CALL_DEADLINE: Duration = Duration::from_secs(60);

/// Which coordinator to talk to.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CoordinatorArgs {
    /// Address of the coordinator [default: http://127.0.0.1:7300, with --ca https://127.0.0.1:7300]
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    coordinator: Option<String>,
    /// Data folder of a local run: through its coordinator while that serves, else straight from the files
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    connect: ConnectArgs,
}

impl CoordinatorArgs {
    /// The local run in this data folder.
    pub(crate) fn of_folder(data: &Path) -> CoordinatorArgs {
        CoordinatorArgs {
            data: Some(data.to_path_buf()),
            ..CoordinatorArgs::default()
        }
    }

    /// The address of a coordinator that somebody started.
    pub(crate) fn served_url(&self) -> anyhow::Result<String> {
        match (&self.coordinator, &self.data) {
            (Some(url), _) => Ok(url.clone()),
            (None, Some(data)) => read_address(data, &self.connect),
            (None, None) => Ok(format!("{}{LISTEN_DEFAULT}", scheme(&self.connect))),
        }
    }

    pub(crate) fn credentials(&self) -> anyhow::Result<Credentials> {
        Ok(self.connect.credentials()?)
    }

    /// The administrators' side of a coordinator that runs.
    pub(crate) fn admin(&self) -> anyhow::Result<AdminServiceClient<Channel>> {
        if let Some(data) = &self.data
            && !lock::is_held(data, "coordinator")?
        {
            bail!(
                "no coordinator runs on {data}: start it first, or make the first tokens with `tengen token init --data {data} \
                 --tokens DIR`",
                data = data.display()
            );
        }
        let channel = connect(&self.served_url()?, &self.credentials()?)?;
        Ok(AdminServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX))
    }

    /// Finds the run: its coordinator, or a reader of our own for a run at rest.
    pub(crate) async fn reach(&self) -> anyhow::Result<Reached> {
        match &self.data {
            Some(data) if !lock::is_held(data, "coordinator")? => {
                let (url, reader) = Reader::start(data).await?;
                Ok(Reached {
                    url,
                    // Who reads the files needs nobody's leave.
                    credentials: Credentials::default(),
                    reader: Some(reader),
                })
            }
            _ => Ok(Reached {
                url: self.served_url()?,
                credentials: self.credentials()?,
                reader: None,
            }),
        }
    }
}

/// A run that can be asked.
#[derive(Debug)]
pub(crate) struct Reached {
    url: String,
    credentials: Credentials,
    /// Ends when this is dropped.
    reader: Option<Reader>,
}

impl Reached {
    pub(crate) fn runs(&self) -> anyhow::Result<RunServiceClient<Channel>> {
        Ok(runs(connect(&self.url, &self.credentials)?))
    }

    /// Whether it is read by a reader of our own, which nobody starts again.
    pub(crate) fn is_our_reader(&self) -> bool {
        self.reader.is_some()
    }

    pub(crate) fn models(&self) -> anyhow::Result<ModelServiceClient<Channel>> {
        Ok(models(connect(&self.url, &self.credentials)?))
    }
}

/// A channel on which no call waits for ever.
pub(crate) fn connect(url: &str, credentials: &Credentials) -> anyhow::Result<Channel> {
    Ok(channel::connect(url, credentials)?.with_deadline(CALL_DEADLINE))
}

/// Moves a list call on to the next page, if there is one.
pub(crate) fn goes_on(page_token: &mut String, next: String) -> anyhow::Result<bool> {
    if !next.is_empty() && next == *page_token {
        bail!("the coordinator repeats the page {next:?}");
    }
    *page_token = next;
    Ok(!page_token.is_empty())
}

pub(crate) fn models(channel: Channel) -> ModelServiceClient<Channel> {
    ModelServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX)
}

pub(crate) fn runs(channel: Channel) -> RunServiceClient<Channel> {
    RunServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX)
}

/// How a local coordinator is called: over TLS when an authority is given.
fn scheme(connect: &ConnectArgs) -> &'static str {
    if connect.ca.is_some() { "https://" } else { "http://" }
}

/// The address of the coordinator that runs on this data folder.
pub(crate) fn read_address(data: &Path, connect: &ConnectArgs) -> anyhow::Result<String> {
    let path = data.join(ADDRESS_FILE);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("no coordinator has run in {} (no {})", data.display(), path.display()))?;
    let address = text.trim();
    if address.is_empty() {
        bail!("{} is empty", path.display());
    }
    Ok(format!("{}{address}", scheme(connect)))
}

/// Turns a refusal of the coordinator into words: its own message, or that it cannot be reached.
pub(crate) fn explain(status: &tonic::Status) -> anyhow::Error {
    match status.code() {
        tonic::Code::Unavailable => anyhow::anyhow!(
            "the coordinator cannot be reached ({}): is it running, and is this its address? (--coordinator, --data)",
            status.message()
        ),
        _ => anyhow::anyhow!("{}", status.message()),
    }
}
