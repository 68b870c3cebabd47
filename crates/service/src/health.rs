//! The health probe: asks `grpc.health.v1` whether a process serves.

use std::time::Duration;

use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::channel;
use crate::credentials::Credentials;

/// The process does not serve, and why.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// The address or the credentials are wrong.
    #[error(transparent)]
    Connect(#[from] channel::ConnectError),
    /// No answer.
    #[error("{url} does not answer: {reason}")]
    Unreachable {
        /// Where we asked.
        url: String,
        /// What the transport said.
        reason: String,
    },
    /// An answer, but not the good one.
    #[error("{url} answers, but is {status}")]
    NotServing {
        /// Where we asked.
        url: String,
        /// What it said.
        status: String,
    },
}

/// `Ok` when the process at `url` says it serves, within five seconds.
pub async fn probe(url: &str, credentials: &Credentials) -> Result<(), HealthError> {
    let mut client = HealthClient::new(channel::connect(url, credentials)?);
    let mut request = tonic::Request::new(HealthCheckRequest::default());
    request.set_timeout(Duration::from_secs(5));
    let answer = client.check(request).await.map_err(|status| HealthError::Unreachable {
        url: url.to_owned(),
        reason: status.message().to_owned(),
    })?;
    match answer.into_inner().status() {
        ServingStatus::Serving => Ok(()),
        status => Err(HealthError::NotServing {
            url: url.to_owned(),
            status: status.as_str_name().to_lowercase(),
        }),
    }
}
