//! The networks of one lease, in one precision: a match of two in different ones would compare arithmetic too, and the
//! coordinator refuses its games.

use std::sync::Arc;

use tengen_selfplay::ModelBytes;

use super::Network;

/// Their files in the reduced precision that each of them alone is played in, if that is the same one; else those in fp32.
pub(super) fn in_one_precision(networks: &[Arc<Network>]) -> Vec<Arc<ModelBytes>> {
    let first = networks.first().and_then(|network| network.reduced.as_ref());
    let wanted = first.map(|file| file.precision());
    let is_wanted = |file: &Arc<ModelBytes>| Some(file.precision()) == wanted;
    let reduced = networks.iter().map(|network| network.reduced.clone().filter(is_wanted));
    let whole = || networks.iter().map(|network| Arc::clone(&network.whole)).collect();
    reduced.collect::<Option<Vec<_>>>().unwrap_or_else(whole)
}

#[cfg(test)]
mod tests {
    use tengen_records::Precision;

    use super::*;

    /// A network that is played in this precision where it is alone.
    fn network(alone: Precision) -> Arc<Network> {
        let whole = ModelBytes::new(vec![1]);
        let reduced = ModelBytes::variant(whole.id(), alone, vec![2]);
        Arc::new(Network {
            whole,
            reduced: (alone != Precision::Fp32).then_some(reduced),
            fell_back: String::new(),
        })
    }

    #[test]
    fn who_meets_plays_in_the_precision_of_self_play_if_both_do_and_else_in_fp32() {
        use Precision::{Fp16, Fp32, Int8};
        for (alone, together) in [
            (&[Int8][..], Int8),
            (&[Fp32], Fp32),
            (&[Int8, Int8], Int8),
            (&[Fp16, Fp16], Fp16),
            // A candidate against generation 0, and one that was not offered against a champion that was.
            (&[Int8, Fp32], Fp32),
            (&[Fp32, Int8], Fp32),
            // The device of one was another when it was looked at.
            (&[Int8, Fp16], Fp32),
            (&[Fp16, Int8], Fp32),
        ] {
            let networks: Vec<_> = alone.iter().map(|&precision| network(precision)).collect();
            let played = in_one_precision(&networks);
            assert_eq!(played.len(), alone.len());
            assert!(
                played.iter().all(|file| file.precision() == together),
                "{alone:?}: {played:?}"
            );
        }
    }
}
