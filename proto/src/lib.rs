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

/// The protocol version this build speaks.
pub const PROTOCOL: u32 = 1;
