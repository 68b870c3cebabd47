//! How the command finds and reaches a coordinator.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use tengen_proto::v1::model_service_client::ModelServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_service::channel::{self, MESSAGE_BYTES_MAX};
use tonic::transport::Channel;

/// Where `tengen up` listens unless told otherwise.
pub(crate) const LISTEN_DEFAULT: &str = "127.0.0.1:7300";

/// Name of the file in a run's data folder that holds the coordinator's address while it runs.
pub(crate) const ADDRESS_FILE: &str = "coordinator.addr";

/// Which coordinator to talk to.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CoordinatorArgs {
    /// Address of the coordinator [default: http://127.0.0.1:7300]
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    coordinator: Option<String>,
    /// Data folder of a local run: its coordinator's address is read from there
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

impl CoordinatorArgs {
    pub(crate) fn url(&self) -> anyhow::Result<String> {
        match (&self.coordinator, &self.data) {
            (Some(url), _) => Ok(url.clone()),
            (None, Some(data)) => read_address(data),
            (None, None) => Ok(format!("http://{LISTEN_DEFAULT}")),
        }
    }

    pub(crate) fn runs(&self) -> anyhow::Result<RunServiceClient<Channel>> {
        runs(&self.url()?)
    }

    pub(crate) fn models(&self) -> anyhow::Result<ModelServiceClient<Channel>> {
        let channel = channel::connect(&self.url()?)?;
        Ok(ModelServiceClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX))
    }
}

pub(crate) fn runs(url: &str) -> anyhow::Result<RunServiceClient<Channel>> {
    Ok(RunServiceClient::new(channel::connect(url)?).max_decoding_message_size(MESSAGE_BYTES_MAX))
}

pub(crate) fn read_address(data: &Path) -> anyhow::Result<String> {
    let path = data.join(ADDRESS_FILE);
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("no coordinator has run in {} (no {})", data.display(), path.display()))?;
    let address = text.trim();
    if address.is_empty() {
        bail!("{} is empty", path.display());
    }
    Ok(format!("http://{address}"))
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
