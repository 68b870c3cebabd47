//! Wire types and gRPC services of Tengen, generated from the `.proto` files beside this crate.
//!
//! This crate holds no logic: conversions to the types of the rules live in `tengen-records`.

/// Version 1 of the wire types.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    reason = "generated code"
)]
pub mod v1 {
    tonic::include_proto!("tengen.v1");
}

impl v1::Activity {
    /// The name that people write and read.
    pub const fn name(self) -> &'static str {
        match self {
            v1::Activity::SelfPlay => "self-play",
            v1::Activity::Training => "training",
            v1::Activity::Gating => "gating",
            v1::Activity::Unspecified => "something this build does not know",
        }
    }
}

impl std::fmt::Debug for v1::CreateTokenResponse {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CreateTokenResponse")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// The compiled descriptors of every service here, for gRPC reflection.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tengen_descriptor.bin"));

/// The protocol version this build speaks: what its actors ask for, and the newest its coordinator serves.
///
/// * 1: the first.
/// * 2: games carry a ticket that their verdict repeats; the answer to a report may want leases back.
/// * 3: games are records of schema version 2. Those of version 1 are taken as before, also from an actor of today, whose
///   spool may hold some.
pub const PROTOCOL: u32 = 3;

/// The oldest protocol version whose actors are still served: that of the previous minor version. A coordinator is
/// brought up to date before its actors.
pub const PROTOCOL_MIN: u32 = 1;
