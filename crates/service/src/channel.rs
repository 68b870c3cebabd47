//! How a process reaches the coordinator: one lazily connected HTTP/2 channel with explicit limits.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

/// Largest message either side accepts.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The address is not a URL we can use.
#[derive(Debug, thiserror::Error)]
#[error("{url:?} is not a coordinator's address ({reason}); write it like http://127.0.0.1:7300")]
pub struct AddressError {
    /// What was given.
    pub url: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A channel to `url` that connects when first used, so that processes may start in any order.
pub fn connect(url: &str) -> Result<Channel, AddressError> {
    let refused = |reason: String| AddressError {
        url: url.to_owned(),
        reason,
    };
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| refused(error.to_string()))?;
    if endpoint.uri().scheme_str() != Some("http") {
        return Err(refused("only http:// is served by this version".to_owned()));
    }
    Ok(endpoint
        .connect_timeout(Duration::from_secs(5))
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10))
        .keep_alive_while_idle(true)
        .connect_lazy())
}
