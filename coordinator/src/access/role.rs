//! Roles, and which of them may call what: one table for every call there is.
//!
//! A call that is not in the table is not served at all, so a new one without a row cannot slip through; a test walks the
//! services' own description and names what is missing.

use std::fmt;
use std::str::FromStr;

/// What a token's bearer is here for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Watches: reads the run and its networks.
    Viewer,
    /// Plays: takes work, sends games, reads networks.
    Actor,
    /// Trains: reads the window, publishes networks.
    Learner,
    /// May do everything.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Actor, Role::Learner, Role::Admin];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Actor => "actor",
            Role::Learner => "learner",
            Role::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no such role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role: use viewer, actor, learner or admin")]
pub struct NoSuchRole(pub String);

impl FromStr for Role {
    type Err = NoSuchRole;

    fn from_str(text: &str) -> Result<Role, NoSuchRole> {
        let named = |role: &&Role| role.as_str() == text;
        Role::ALL
            .iter()
            .find(named)
            .copied()
            .ok_or_else(|| NoSuchRole(text.to_owned()))
    }
}

/// Who may make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Anybody, without a token.
    Nothing,
    /// One of these roles; an admin always may.
    OneOf(&'static [Role]),
}

/// Those who watch.
const WATCHERS: Needs = Needs::OneOf(&[Role::Viewer]);
/// Those who play.
const PLAYERS: Needs = Needs::OneOf(&[Role::Actor]);
/// The one that trains.
const TRAINERS: Needs = Needs::OneOf(&[Role::Learner]);
/// All who read networks.
const MODEL_READERS: Needs = Needs::OneOf(&[Role::Viewer, Role::Actor, Role::Learner]);
/// Nobody but an admin.
const ADMINS: Needs = Needs::OneOf(&[]);
/// Whoever comes.
const ANYBODY: Needs = Needs::Nothing;

/// Every call, by service.
const TABLE: &[(&str, &[(&str, Needs)])] = &[
    (
        "tengen.v1.ActorService",
        &[
            ("Register", PLAYERS),
            ("GetWork", PLAYERS),
            ("SubmitGames", PLAYERS),
            ("Report", PLAYERS),
        ],
    ),
    (
        "tengen.v1.ModelService",
        &[
            ("ListModels", MODEL_READERS),
            ("GetModel", MODEL_READERS),
            ("DownloadModel", MODEL_READERS),
            ("WatchChampion", MODEL_READERS),
            ("PublishModel", TRAINERS),
        ],
    ),
    (
        "tengen.v1.LearnerService",
        &[("Register", TRAINERS), ("Report", TRAINERS)],
    ),
    ("tengen.v1.ReplayService", &[("StreamWindow", TRAINERS)]),
    (
        "tengen.v1.RunService",
        &[
            ("GetStatus", WATCHERS),
            ("WatchStatus", WATCHERS),
            ("ListIterations", WATCHERS),
            ("ListMatches", WATCHERS),
            ("GetMatch", WATCHERS),
            ("Diagnose", WATCHERS),
            ("ListActors", WATCHERS),
            ("ListRatings", WATCHERS),
            ("ListPairings", WATCHERS),
            ("GetSettings", WATCHERS),
            ("ListSettings", WATCHERS),
            ("ListGames", WATCHERS),
            ("GetGame", WATCHERS),
        ],
    ),
    (
        "tengen.v1.AdminService",
        &[
            ("CreateToken", ADMINS),
            ("ListTokens", ADMINS),
            ("RevokeToken", ADMINS),
            ("SuspendActor", ADMINS),
            ("ResumeActor", ADMINS),
            ("PurgeActor", ADMINS),
            ("ListAudit", ADMINS),
            ("Pause", ADMINS),
            ("Resume", ADMINS),
            ("PromoteModel", ADMINS),
            ("RejectCandidate", ADMINS),
            ("RollBack", ADMINS),
            ("PinChampion", ADMINS),
            ("UnpinChampion", ADMINS),
            ("EndRun", ADMINS),
            ("ChangeSettings", ADMINS),
        ],
    ),
    ("grpc.health.v1.Health", &[("Check", ANYBODY), ("Watch", ANYBODY)]),
    (
        "grpc.reflection.v1.ServerReflection",
        &[("ServerReflectionInfo", ANYBODY)],
    ),
    (
        "grpc.reflection.v1alpha.ServerReflection",
        &[("ServerReflectionInfo", ANYBODY)],
    ),
];

/// Who may call `/service/method`; `None` when there is no such call.
pub(crate) fn needs(path: &str) -> Option<Needs> {
    let (service, method) = path.strip_prefix('/')?.split_once('/')?;
    let (_, methods) = TABLE.iter().find(|(name, _)| *name == service)?;
    methods
        .iter()
        .find(|(name, _)| *name == method)
        .map(|&(_, needs)| needs)
}

impl Needs {
    /// Whether this role may.
    pub(crate) fn allows(self, role: Role) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::OneOf(roles) => role == Role::Admin || roles.contains(&role),
        }
    }

    /// The roles in words, for example `viewer, actor or admin`.
    pub(crate) fn in_words(self) -> String {
        let roles = match self {
            Needs::Nothing => return "no role".to_owned(),
            Needs::OneOf(roles) => roles,
        };
        match roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => "admin".to_owned(),
            some => format!("{some} or admin"),
        }
    }

    /// The least of these roles: the one to ask for.
    pub(crate) fn least(self) -> Role {
        match self {
            Needs::Nothing => Role::Viewer,
            Needs::OneOf(roles) => roles.first().copied().unwrap_or(Role::Admin),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost::Message;
    use prost_types::FileDescriptorSet;

    use super::*;

    fn described() -> BTreeSet<String> {
        let sets = [
            tengen_proto::DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ];
        let files = sets
            .into_iter()
            .flat_map(|set| FileDescriptorSet::decode(set).unwrap().file);
        let paths = files.flat_map(|file| {
            let package = file.package().to_owned();
            let services = file.service.into_iter();
            services.flat_map(move |service| {
                let name = format!("/{package}.{}", service.name());
                let path = move |method: prost_types::MethodDescriptorProto| format!("{name}/{}", method.name());
                service.method.into_iter().map(path).collect::<Vec<_>>()
            })
        });
        paths.collect()
    }

    #[test]
    fn every_call_of_every_service_has_its_row_and_no_row_is_for_nothing() {
        let rows = TABLE
            .iter()
            .flat_map(|(service, methods)| methods.iter().map(move |(method, _)| format!("/{service}/{method}")));
        assert_eq!(rows.collect::<BTreeSet<_>>(), described());
    }

    #[test]
    fn a_viewer_changes_nothing_and_an_admin_may_everything() {
        for path in described() {
            let needs = needs(&path).unwrap();
            assert!(needs.allows(Role::Admin), "{path}");
            let method = path.rsplit('/').next().unwrap();
            let reads = [
                "Get",
                "List",
                "Watch",
                "Download",
                "Check",
                "ServerReflection",
                "Diagnose",
            ];
            let changes = method == "GetWork" || !reads.iter().any(|prefix| method.starts_with(prefix));
            assert!(!(changes && needs.allows(Role::Viewer)), "{path}");
        }
    }

    #[test]
    fn what_is_not_in_the_table_is_not_served() {
        for path in [
            "",
            "/",
            "/tengen.v1.RunService",
            "/tengen.v1.RunService/Get",
            "/x/GetStatus",
            "GetStatus",
        ] {
            assert_eq!(needs(path), None, "{path}");
        }
    }
}
