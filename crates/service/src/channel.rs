//! How a process reaches the coordinator: one lazily connected HTTP/2 channel with explicit limits, its token on every
//! call, and failures in words that say what to do.

use std::error::Error;
use std::fmt::Write;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::BoxFuture;
use tonic::transport::{self, Certificate, ClientTlsConfig, Endpoint, Identity};
use tower_service::Service;

use crate::credentials::Credentials;

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

/// The coordinator cannot be called like this.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is wrong.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The certificates are missing or wrong.
    #[error("{url} cannot be called over TLS: {reason}")]
    Tls {
        /// What was given.
        url: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

/// A channel to the coordinator; clones share one connection.
#[derive(Clone, Debug)]
pub struct Channel {
    inner: transport::Channel,
    authorization: Option<HeaderValue>,
    scheme: Scheme,
    deadline: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Plain,
    Tls,
}

/// A channel to `url` that connects when first used, so that processes may start in any order.
pub fn connect(url: &str, credentials: &Credentials) -> Result<Channel, ConnectError> {
    let refused = |reason: String| AddressError {
        url: url.to_owned(),
        reason,
    };
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| refused(error.to_string()))?;
    let authorization = credentials.authorization();
    let (endpoint, scheme) = match endpoint.uri().scheme_str() {
        Some("http") => {
            let host = endpoint.uri().host().unwrap_or_default().to_owned();
            if authorization.is_some() && !is_loopback(&host) {
                tracing::warn!(%host, "the token travels unencrypted: anybody on the way can read it; use https://");
            }
            (endpoint, Scheme::Plain)
        }
        Some("https") => (with_tls(endpoint, url, credentials)?, Scheme::Tls),
        _ => return Err(refused("it begins neither with http:// nor with https://".to_owned()).into()),
    };
    let inner = endpoint
        .connect_timeout(Duration::from_secs(5))
        .tcp_nodelay(true)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10))
        .keep_alive_while_idle(true)
        .connect_lazy();
    Ok(Channel {
        inner,
        authorization,
        scheme,
        deadline: None,
    })
}

impl Channel {
    /// Gives up a call whose answer has not begun after `deadline`; what is streamed after that may take its time.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Channel {
        self.deadline = Some(deadline);
        self
    }
}

fn with_tls(endpoint: Endpoint, url: &str, credentials: &Credentials) -> Result<Endpoint, ConnectError> {
    let refused = |reason: String| ConnectError::Tls {
        url: url.to_owned(),
        reason,
    };
    let Some(ca) = &credentials.ca else {
        return Err(refused(
            "give the certificate authority that vouches for the coordinator with --ca FILE (for a public one, the \
             system's bundle, such as /etc/ssl/certs/ca-certificates.crt)"
                .to_owned(),
        ));
    };
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
    if let Some((cert, key)) = &credentials.identity {
        tls = tls.identity(Identity::from_pem(cert, key));
    }
    endpoint.tls_config(tls).map_err(|error| refused(causes(&error)))
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Body>;
    type Error = Status;
    type Future = BoxFuture<Response<Body>, Status>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        let scheme = self.scheme;
        self.inner.poll_ready(context).map_err(|error| explained(error, scheme))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        let answer = self.inner.call(request);
        let (scheme, deadline) = (self.scheme, self.deadline);
        Box::pin(async move {
            let answer = match deadline {
                None => answer.await,
                Some(deadline) => tokio::time::timeout(deadline, answer)
                    .await
                    .map_err(|_| overdue(deadline))?,
            };
            answer.map_err(|error| explained(error, scheme))
        })
    }
}

/// An answer that did not come in time.
fn overdue(deadline: Duration) -> Status {
    let seconds = deadline.as_secs_f64();
    Status::deadline_exceeded(format!(
        "no answer came within {seconds} s: the coordinator is there and does not get to it; its log says what it does"
    ))
}

/// A failure of the transport with all its causes, and what to look at.
fn explained(error: transport::Error, scheme: Scheme) -> Status {
    let mut message = causes(&error);
    let unfinished = ["http2 error", "connection closed", "frame", "broken pipe", "reset"];
    match scheme {
        Scheme::Plain if unfinished.iter().any(|sign| message.contains(sign)) => {
            message.push_str("; if the coordinator serves TLS, write https:// and give --ca FILE");
        }
        Scheme::Tls if message.contains("UnknownIssuer") || message.contains("invalid peer certificate") => {
            message.push_str("; the certificate that the coordinator shows does not fit --ca FILE or this address");
        }
        Scheme::Tls if message.contains("InvalidContentType") => {
            message.push_str("; it does not answer in TLS: if the coordinator serves without, write http://");
        }
        Scheme::Tls if message.contains("CertificateRequired") => {
            message
                .push_str("; the coordinator wants a certificate of its clients: give --client-cert and --client-key");
        }
        Scheme::Plain | Scheme::Tls => {}
    }
    Status::new(Status::from_error(Box::new(error)).code(), message)
}

fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        // Some layers repeat what they wrap.
        if !text.ends_with(&cause_text) {
            let _infallible = write!(text, ": {cause_text}");
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_scheme_we_speak_is_refused() {
        for url in ["127.0.0.1:7300", "ftp://127.0.0.1", "not an address"] {
            let refused = connect(url, &Credentials::default()).unwrap_err().to_string();
            assert!(
                refused.contains(url) && refused.contains("http://127.0.0.1:7300"),
                "{refused}"
            );
        }
    }

    #[test]
    fn https_without_an_authority_says_which_flag_is_missing() {
        let refused = connect("https://127.0.0.1:7300", &Credentials::default()).unwrap_err();
        assert!(refused.to_string().contains("--ca FILE"), "{refused}");
    }

    #[tokio::test]
    async fn a_coordinator_that_takes_calls_and_answers_none_is_given_up() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let channel = connect(&url, &Credentials::default()).unwrap();
        let mut client =
            tonic_health::pb::health_client::HealthClient::new(channel.with_deadline(Duration::from_millis(50)));
        let request = tonic_health::pb::HealthCheckRequest::default();
        let status = client.check(request).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
        assert!(status.message().contains("within 0.05 s"), "{status}");
        drop(listener);
    }

    #[tokio::test]
    async fn an_address_where_nobody_listens_is_told_with_its_cause() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let channel = connect(&url, &Credentials::default()).unwrap();
        let mut client = tonic_health::pb::health_client::HealthClient::new(channel);
        let status = client
            .check(tonic_health::pb::HealthCheckRequest::default())
            .await
            .unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unavailable);
        assert!(status.message().contains("refused"), "{status}");
    }
}
