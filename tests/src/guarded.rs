//! The tokens of a run as people make them, for tests whose coordinator must tell one caller from another.

use std::path::Path;
use std::process::Command;

use tengen_proto::v1::CreateTokenRequest;
use tengen_proto::v1::admin_service_client::AdminServiceClient;
use tengen_service::credentials::{ConnectArgs, Credentials};

use crate::cluster::program;
use crate::coordinator::Coordinator;

/// The first tokens of a run.
pub struct Tokens {
    folder: std::path::PathBuf,
}

impl Tokens {
    /// Makes them for the run in `data`, which no coordinator serves yet, in a new folder.
    pub fn make(data: &Path, folder: &Path) -> Tokens {
        let made = Command::new(program("tengen-coordinator"))
            .arg("init")
            .arg("--data")
            .arg(data)
            .arg("--tokens")
            .arg(folder)
            .output()
            .expect("the program starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Tokens {
            folder: folder.to_path_buf(),
        }
    }

    /// What the bearer of the first token of this role shows.
    pub fn shown(&self, role: &str) -> Credentials {
        let args = ConnectArgs {
            token_file: Some(self.folder.join(format!("{role}.token"))),
            ..ConnectArgs::default()
        };
        args.credentials().expect("a token's file")
    }

    /// The text of the first token of this role.
    pub fn text(&self, role: &str) -> String {
        let text = std::fs::read_to_string(self.folder.join(format!("{role}.token"))).expect("a token's file");
        text.trim().to_owned()
    }

    /// A further token of this role, made by the admin.
    pub async fn another(&self, coordinator: &Coordinator, role: &str) -> Credentials {
        let mut admin = AdminServiceClient::new(coordinator.channel_with(&self.shown("admin")));
        let request = CreateTokenRequest {
            role: role.to_owned(),
            name: format!("another {role}"),
            valid_seconds: 0,
        };
        let made = admin.create_token(request).await.expect("a token").into_inner();
        Credentials::default()
            .with_token(made.secret.into(), "the answer")
            .expect("a token")
    }
}
