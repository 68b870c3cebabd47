//! The contract of the window's stores, each clause over both, and once more over Redis as a cluster of one node.

use proptest::prelude::*;
use tengen_replay::testing::{RedisServer, contract as clauses};

use crate::stores::{Memory, Redis, server};

/// Runs the test in the memory and in Redis.
macro_rules! contract {
    ($($name:ident,)*) => {
    $(
        mod $name {
            use super::clauses;

            #[tokio::test]
            async fn in_memory() {
                clauses::$name(super::Memory::new()).await;
            }

            #[tokio::test]
            async fn in_redis() {
                let (server, _folder) = super::server(&[]);
                clauses::$name(super::Redis::new(&server, "contract").await).await;
            }
        }
    )*

        mod one_node_of_a_cluster {
            use super::{Redis, RedisServer, clauses};

            #[tokio::test]
            async fn in_redis() {
                let folder = tempfile::tempdir().expect("a folder");
                let server = RedisServer::start_cluster(folder.path());
                $(clauses::$name(Redis::new(&server, stringify!($name)).await).await;)*
            }
        }
    };
}

tengen_replay::window_contract!(contract);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn both_stores_keep_exactly_the_newest_positions(
        capacity in 1u64..60,
        positions in prop::collection::vec(0u32..25, 0..60),
        rebuilt in 0usize..30,
        batches in prop::collection::vec(0usize..12, 0..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            clauses::law_holds(Memory::new(), capacity, &positions, rebuilt, &batches).await;
            let (server, _folder) = server(&[]);
            let redis = Redis::new(&server, "law").await;
            clauses::law_holds(redis, capacity, &positions, rebuilt, &batches).await;
        });
    }
}
