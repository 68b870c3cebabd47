//! Networks that arrive with one bit flipped, many of them: none is ever played with, kept, or taken for another.

use std::path::Path;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_faults::{Proof, scaled};
use tengen_selfplay::ModelBytes;
use tokio::task::JoinSet;

use crate::peer::{DownloadFault, Peer, network};
use crate::{ANY_PORT, Running, options, self_play};

/// Actors at once, each with a peer of its own: an actor rests a while before it fetches a network again.
const ACTORS: usize = 10;
/// Damaged downloads of one network: with a third the actor would stop, which another test shows.
const FLIPS_EACH: usize = 2;
/// Larger than any bit of a file; the peer takes it modulo the file's bits.
const BITS: usize = 1 << 40;

#[tokio::test(flavor = "multi_thread")]
async fn of_many_flipped_downloads_none_is_played_with_or_kept() {
    let proof = Proof::begin("downloads-flipped");
    let networks_each = scaled(200, 1_000) / ACTORS / FLIPS_EACH;
    let mut actors = JoinSet::new();
    for number in 0..ACTORS {
        actors.spawn(one_actor(number as u64, networks_each));
    }
    let flips: usize = actors.join_all().await.into_iter().sum();
    let networks = networks_each * ACTORS;
    proof
        .count("flips", flips)
        .count("networks_played_with", networks)
        .proved();
}

/// Has an actor fetch so many networks, each damaged at first; returns how many damaged downloads it refused.
async fn one_actor(number: u64, networks: usize) -> usize {
    let data = tempfile::tempdir().unwrap();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(number);
    let peer = Peer::new("tic-tac-toe");
    let server = peer.serve(ANY_PORT).await;
    let actor = Running::start(options(&server, data.path()));
    for round in 0..networks {
        {
            let mut state = peer.state();
            state.models = vec![network(&peer.game, rng.random())];
            state.download_faults = [(); FLIPS_EACH]
                .map(|()| DownloadFault::Flip(rng.random_range(0..BITS)))
                .into();
        }
        peer.order(round as u128, self_play(1), 1);
        peer.until("a game with the whole network", |state| state.stored.len() > round)
            .await;
    }
    actor.drain().await.unwrap();
    let state = peer.state();
    // Every download from its first byte: nothing of a damaged one is gone on with.
    assert_eq!(state.downloads as usize, networks * (FLIPS_EACH + 1));
    assert!(state.download_offsets.iter().all(|offset| *offset == 0));
    assert!(state.download_faults.is_empty() && state.returned.is_empty());
    assert_kept_whole(&data.path().join("models"));
    networks * FLIPS_EACH
}

/// Every file has the hash that is its name.
fn assert_kept_whole(folder: &Path) {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let model = ModelBytes::new(std::fs::read(&path).unwrap());
        assert_eq!(
            path.file_stem().unwrap().to_str(),
            Some(model.id().to_string().as_str())
        );
        files += 1;
    }
    assert!(files > 0);
}
