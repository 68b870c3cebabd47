//! What these tests stand on: a coordinator with tokens, and clients that show them.

use std::path::Path;

use tempfile::TempDir;
use tengen_coordinator::{Config, Limits, Options, init};
use tengen_proto::v1;
use tengen_proto::v1::admin_service_client::AdminServiceClient;
use tengen_proto::v1::run_service_client::RunServiceClient;
use tengen_service::channel::{self, Channel};
use tengen_service::credentials::{ConnectArgs, Credentials};
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::rig::{self, NONE, Rig, TIC_TAC_TOE};

/// A run that no gate holds up.
pub(crate) fn run() -> String {
    format!("{TIC_TAC_TOE}{NONE}")
}

/// A coordinator whose folder has tokens, and the tokens' folder.
pub(crate) struct Guarded {
    pub(crate) rig: Rig,
    tokens: TempDir,
}

impl Guarded {
    pub(crate) async fn start() -> Guarded {
        Guarded::start_with(Limits::default()).await
    }

    pub(crate) async fn start_with(limits: Limits) -> Guarded {
        let data = tempfile::tempdir().expect("a folder");
        let tokens = tempfile::tempdir().expect("a folder");
        init(data.path(), tokens.path()).expect("tokens");
        let options = options_with(data.path(), limits);
        let mut rig = Rig::start_with(data, options).await.expect("it starts");
        rig.credentials = shown(&tokens.path().join("admin.token"));
        Guarded { rig, tokens }
    }

    pub(crate) async fn restart(self) -> Guarded {
        let credentials = self.rig.credentials.clone();
        let mut rig = self.rig.restart(&run()).await;
        rig.credentials = credentials;
        Guarded {
            rig,
            tokens: self.tokens,
        }
    }

    /// The credentials of the role's first token.
    pub(crate) fn role(&self, role: &str) -> Credentials {
        shown(&self.tokens.path().join(format!("{role}.token")))
    }

    /// The text of the role's first token.
    pub(crate) fn text(&self, role: &str) -> String {
        let path = self.tokens.path().join(format!("{role}.token"));
        let text = std::fs::read_to_string(path).expect("a token");
        text.trim().to_owned()
    }

    pub(crate) fn channel(&self, credentials: &Credentials) -> Channel {
        channel::connect(&self.rig.url, credentials).expect("a url")
    }

    pub(crate) fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel(&self.rig.credentials))
    }

    /// A new token of this role, good for so many seconds (0: for ever), as the admin makes it.
    pub(crate) async fn make(&self, role: &str, valid_seconds: u64) -> (v1::Token, Credentials) {
        let request = v1::CreateTokenRequest {
            role: role.to_owned(),
            name: format!("a {role}"),
            valid_seconds,
        };
        let made = self.admin().create_token(request).await.expect("a token").into_inner();
        let credentials = Credentials::default()
            .with_token(made.secret.into(), "the answer")
            .expect("a token");
        (made.token.expect("a token"), credentials)
    }

    pub(crate) async fn revoke(&self, token_id: &str) -> Result<v1::Token, Status> {
        let request = v1::RevokeTokenRequest {
            token_id: token_id.to_owned(),
        };
        Ok(self.admin().revoke_token(request).await?.into_inner())
    }

    /// The status, as whoever has these credentials may read it.
    pub(crate) async fn status_with(&self, credentials: &Credentials) -> Result<v1::RunStatus, Status> {
        let mut client = RunServiceClient::new(self.channel(credentials));
        Ok(client.get_status(v1::GetStatusRequest {}).await?.into_inner())
    }
}

pub(crate) fn options_with(data: &Path, limits: Limits) -> Options {
    let options = rig::options(data, &run());
    Options {
        config: Config {
            limits,
            ..options.config.clone()
        },
        ..options
    }
}

pub(crate) fn shown(file: &Path) -> Credentials {
    let args = ConnectArgs {
        token_file: Some(file.to_path_buf()),
        ..ConnectArgs::default()
    };
    args.credentials().expect("a token's file")
}

/// The stable reason of a refusal.
pub(crate) fn reason(status: &Status) -> String {
    let details = status.get_error_details();
    details.error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

/// Asserts code, reason and a part of the message.
#[track_caller]
pub(crate) fn assert_refused(status: &Status, code: Code, reason_wanted: &str, part: &str) {
    assert_eq!(
        (status.code(), reason(status).as_str()),
        (code, reason_wanted),
        "{status}"
    );
    assert!(status.message().contains(part), "{part:?} in {status}");
}
