//! Laws of the ratings: they depend on the games alone, agree with another way to compute them, and say truly how sure
//! they are.

use std::collections::BTreeMap;
use std::process::Command;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tengen_control::GameScore;
use tengen_control::rating::{Counts, Fit, PlayerId, Results};

const ANCHOR: PlayerId = PlayerId(0);

/// Games of pairings as (first, second, wins, draws, losses).
type Games = Vec<(u32, u32, u64, u64, u64)>;

fn results(games: &Games) -> Results {
    let mut results = Results::default();
    for &(first, second, wins, draws, losses) in games {
        results.add_counts(PlayerId(first), PlayerId(second), Counts { wins, draws, losses });
    }
    results
}

/// Up to 12 players, most of them joined by a chain, with further pairings.
fn games() -> impl Strategy<Value = Games> {
    let pairing = (0u32..12, 0u32..12, 0u64..60, 0u64..20, 0u64..60);
    let chain = prop::collection::vec((0u64..40, 0u64..10, 0u64..40), 1..12);
    (chain, prop::collection::vec(pairing, 0..20)).prop_map(|(chain, more)| {
        let joined = chain.into_iter().enumerate();
        let mut games: Games = joined
            .map(|(n, (w, d, l))| (n as u32 + 1, n as u32, w + 1, d, l))
            .collect();
        games.extend(more);
        games
    })
}

/// Hunter's (2004) minorisation-maximisation on plain strengths, far from Newton's method on their logarithms.
fn by_hunter(games: &Games) -> BTreeMap<u32, f64> {
    let mut pairings: BTreeMap<(u32, u32), (f64, f64)> = BTreeMap::new();
    for &(first, second, wins, draws, losses) in games.iter().filter(|game| game.0 != game.1) {
        if wins + draws + losses == 0 {
            continue;
        }
        let (half, games) = (draws as f64 / 2.0, (wins + draws + losses) as f64);
        for (one, other, points) in [
            (first, second, wins as f64 + half),
            (second, first, losses as f64 + half),
        ] {
            let entry = pairings.entry((one, other)).or_insert((0.5, 1.0));
            entry.0 += points;
            entry.1 += games;
        }
    }
    let mut strengths: BTreeMap<u32, f64> = pairings.keys().map(|&(one, _)| (one, 1.0)).collect();
    for _ in 0..200_000 {
        let mut greatest: f64 = 0.0;
        for &player in strengths.clone().keys() {
            let of = pairings.iter().filter(|((one, _), _)| *one == player);
            let (mut points, mut sum) = (0.0, 0.0);
            for ((_, other), (scored, games)) in of {
                points += scored;
                sum += games / (strengths[&player] + strengths[other]);
            }
            let next: f64 = points / sum;
            greatest = greatest.max((next / strengths[&player]).ln().abs());
            strengths.insert(player, next);
        }
        if greatest < 1e-12 {
            break;
        }
    }
    let anchor = strengths.get(&0).copied().unwrap_or(1.0);
    strengths
        .into_iter()
        .map(|(player, s)| (player, 400.0 * (s / anchor).log10()))
        .collect()
}

/// Whether two fits say the same, with players renamed.
fn agree(one: &Fit, other: &Fit, rename: impl Fn(PlayerId) -> PlayerId) -> bool {
    one.ratings().count() == other.ratings().count()
        && one.ratings().all(|(player, rating)| {
            other.rating(rename(player)).is_some_and(|same| {
                (rating.elo - same.elo).abs() < 1e-5 && (rating.deviation - same.deviation).abs() < 1e-5
            })
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn ratings_depend_on_the_games_and_on_nothing_else(games in games(), seed: u64) {
        let fit = Fit::new(&results(&games), ANCHOR);
        // Another order, every other pairing told from the other side.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut shuffled: Games = games.iter().enumerate().map(|(n, &(a, b, w, d, l))| {
            if n % 2 == 0 { (b, a, l, d, w) } else { (a, b, w, d, l) }
        }).collect();
        for n in (1..shuffled.len()).rev() {
            shuffled.swap(n, rng.random_range(0..=n));
        }
        prop_assert!(agree(&fit, &Fit::new(&results(&shuffled), ANCHOR), |player| player));
        // Other numbers for the players: what was 0 is 70.
        let renamed: Games = games.iter().map(|&(a, b, w, d, l)| (70 - a, 70 - b, w, d, l)).collect();
        let fit_renamed = Fit::new(&results(&renamed), PlayerId(70));
        prop_assert!(agree(&fit, &fit_renamed, |player| PlayerId(70 - player.0)));
    }

    #[test]
    fn newton_and_hunter_find_the_same_maximum(games in games()) {
        let fit = Fit::new(&results(&games), ANCHOR);
        let other = by_hunter(&games);
        for (player, rating) in fit.ratings().filter(|(player, _)| *player != ANCHOR) {
            let elo = other[&player.0];
            prop_assert!((rating.elo - elo).abs() < 1e-3, "player {}: {} and {elo}", player.0, rating.elo);
        }
    }

    #[test]
    fn another_win_never_lowers_its_winner_nor_raises_its_loser(games in games(), pick in 0usize..100) {
        let before = Fit::new(&results(&games), ANCHOR);
        // A pairing that has games already: the first one of another brings the prior's draw along.
        let known: Vec<_> = games.iter().filter(|game| game.0 != game.1 && game.2 + game.3 + game.4 > 0).collect();
        let (winner, loser, ..) = *known[pick % known.len()];
        let mut more = games.clone();
        more.push((winner, loser, 1, 0, 0));
        let after = Fit::new(&results(&more), ANCHOR);
        let lead = |fit: &Fit| Some(fit.rating(PlayerId(winner))?.elo - fit.rating(PlayerId(loser))?.elo);
        if let (Some(before), Some(after)) = (lead(&before), lead(&after)) {
            prop_assert!(after > before - 1e-6, "{before} became {after}");
        }
    }

    #[test]
    fn those_that_games_join_are_rated_and_nobody_else(games in prop::collection::vec((0u32..12, 0u32..12, 0u64..1_000_000, 0u64..3, 0u64..3), 0..14)) {
        let fit = Fit::new(&results(&games), ANCHOR);
        let mut joined = vec![0];
        for _ in 0..12 {
            for &(a, b, ..) in games.iter().filter(|game| game.2 + game.3 + game.4 > 0) {
                if joined.contains(&a) { joined.push(b); }
                if joined.contains(&b) { joined.push(a); }
            }
            joined.sort_unstable();
            joined.dedup();
        }
        let rated: Vec<u32> = fit.ratings().map(|(player, _)| player.0).collect();
        prop_assert_eq!(rated, joined);
        for (player, rating) in fit.ratings() {
            prop_assert!(rating.elo.is_finite() && rating.deviation.is_finite());
            prop_assert_eq!(rating.deviation == 0.0, player == ANCHOR);
        }
    }
}

/// Plays a round robin of `players` with true strengths and gives its results.
fn simulate(strengths: &[f64], games: u32, rng: &mut Xoshiro256PlusPlus) -> Results {
    let mut results = Results::default();
    for one in 0..strengths.len() {
        for other in one + 1..strengths.len() {
            let chance = 1.0 / (1.0 + 10.0_f64.powf((strengths[other] - strengths[one]) / 400.0));
            for _ in 0..games {
                let score = if rng.random_bool(chance) {
                    GameScore::Win
                } else {
                    GameScore::Loss
                };
                results.add(PlayerId(one as u32), PlayerId(other as u32), score);
            }
        }
    }
    results
}

/// In each of 1000 tournaments one rating is looked at, so the 1000 looks are independent. With intervals that are right the
/// true strength is inside 950 times, with a standard deviation of 6.9: outside of 916 to 984 (5 deviations) a correct fit
/// comes once in 1.7 million times. The seed is fixed.
#[test]
fn true_strengths_lie_within_their_intervals_as_often_as_they_should() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut inside = 0;
    for trial in 0..1000_u32 {
        let mut strengths: Vec<f64> = (0..8).map(|_| rng.random_range(-300.0..300.0)).collect();
        strengths[0] = 0.0;
        let fit = Fit::new(&simulate(&strengths, 20, &mut rng), ANCHOR);
        let player = 1 + trial % 7;
        let rating = fit.rating(PlayerId(player)).expect("everybody has played");
        let truth = strengths[player as usize];
        inside += u32::from(rating.low() <= truth && truth <= rating.high());
    }
    println!("{inside} of 1000 true strengths inside their 95 % intervals");
    assert!((916..=984).contains(&inside), "{inside} of 1000");
}

/// With many games the ratings close in on the truth: 8 players, 2000 games a pairing, deviations of some 6 Elo. A miss by
/// five deviations comes once in 250 thousand seeds; the seed is fixed.
#[test]
fn simulated_strengths_are_recovered() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let strengths = [0.0, 40.0, -120.0, 350.0, 90.0, -15.0, 210.0, 300.0];
    let fit = Fit::new(&simulate(&strengths, 2000, &mut rng), ANCHOR);
    for (player, rating) in fit.ratings().filter(|(player, _)| *player != ANCHOR) {
        let truth = strengths[player.0 as usize];
        assert!(rating.deviation < 8.0, "{rating:?}");
        assert!(
            (rating.elo - truth).abs() < 5.0 * rating.deviation,
            "{truth}: {rating:?}"
        );
    }
}

/// A run of years: a thousand champions in a chain, ten rejected candidates each, and three baselines that met them all.
/// What takes no time here takes none beside the run.
#[test]
fn ten_thousand_players_are_rated_at_once() {
    let mut games: Games = Vec::new();
    for n in 0..1_000_u32 {
        games.push((10 * n + 10, 10 * n, 30, 5, 25));
        for rejected in 1..10 {
            games.push((10 * n + rejected, 10 * n, 25, 5, 30));
        }
        if n % 20 == 0 {
            (0..3).for_each(|baseline| games.push((20_000 + baseline, 10 * n, 5, 2, 33)));
        }
    }
    let fit = Fit::new(&results(&games), ANCHOR);
    assert_eq!(fit.ratings().count(), 10_004);
    assert!(
        fit.ratings()
            .all(|(_, rating)| rating.elo.is_finite() && rating.deviation.is_finite())
    );
}

/// The same by a program that shares nothing with ours: plain gradient ascent and a dense inverse in Python.
#[test]
fn an_independent_computation_in_python_agrees() {
    let games: Games = vec![
        (1, 0, 34, 5, 11),
        (2, 1, 20, 11, 19),
        (3, 2, 61, 0, 19),
        (3, 0, 38, 1, 1),
        (4, 3, 0, 0, 30),
        (4, 0, 17, 3, 20),
        (5, 4, 12, 12, 6),
    ];
    let fit = Fit::new(&results(&games), ANCHOR);
    let output = Command::new("python3")
        .args(["-c", include_str!("bradley_terry.py")])
        .arg(
            games
                .iter()
                .map(|game| format!("{game:?}"))
                .collect::<Vec<_>>()
                .join(" "),
        )
        .output()
        .expect("python3 is there: make setup needs it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let mut compared = 0;
    for line in text.lines() {
        let fields: Vec<f64> = line.split(' ').map(|field| field.parse().expect("a number")).collect();
        let rating = fit.rating(PlayerId(fields[0] as u32)).expect("a rating");
        assert!((rating.elo - fields[1]).abs() < 1e-6, "{line}: {rating:?}");
        assert!((rating.deviation - fields[2]).abs() < 1e-6, "{line}: {rating:?}");
        compared += 1;
    }
    assert_eq!(compared, 5);
}
