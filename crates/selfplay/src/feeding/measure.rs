//! How fast a network is evaluated here, by size of batch, and which size that speaks for. Time is an argument.

use std::time::Duration;

/// Time that all evaluations together should take; each size gets an even share.
const BUDGET: Duration = Duration::from_secs(1);
/// Evaluations of one size at most: enough for a median, and next to nothing for a small network.
const RUNS_MAX: usize = 25;
/// The part of the best rate from which on a smaller batch is better: it needs fewer games at once, and what is lost is
/// what measurements differ by anyway.
const NEAR_BEST: f64 = 0.97;

/// How fast batches of one size are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Positions in one evaluation.
    pub batch: usize,
    /// Positions evaluated in a second, from the median time of an evaluation.
    pub per_second: f64,
}

/// Measures these sizes, ascending. `evaluate` evaluates so many positions and says how long that took.
///
/// The first evaluation of a size prepares what the others use and does not count, unless it is the only one. Sizes for
/// which no time is left are left out: they are the greatest, and the first is always there.
pub(crate) fn rates<E>(
    sizes: &[usize],
    mut evaluate: impl FnMut(usize) -> Result<Duration, E>,
) -> Result<Vec<Rate>, E> {
    let share = BUDGET / u32::try_from(sizes.len()).unwrap_or(u32::MAX).max(1);
    let mut spent = Duration::ZERO;
    let mut rates = Vec::with_capacity(sizes.len());
    for &batch in sizes {
        if spent >= BUDGET {
            break;
        }
        let mut times = Vec::with_capacity(RUNS_MAX);
        let mut here = Duration::ZERO;
        while times.len() < RUNS_MAX && here < share {
            let time = evaluate(batch)?;
            here += time;
            times.push(time);
        }
        spent += here;
        let counted = if times.len() > 1 {
            &mut times[1..]
        } else {
            &mut times[..]
        };
        rates.push(Rate {
            batch,
            per_second: batch as f64 / median(counted).as_secs_f64(),
        });
    }
    Ok(rates)
}

/// The smallest batch that is as fast as the fastest, or nearly; `None` for no rates.
pub(crate) fn choose(rates: &[Rate]) -> Option<usize> {
    let best = rates.iter().map(|rate| rate.per_second).fold(0.0, f64::max);
    let near = rates.iter().filter(|rate| rate.per_second >= NEAR_BEST * best);
    near.map(|rate| rate.batch).min()
}

/// The median, of an even number the greater of the two in the middle; at least a nanosecond, which no clock tells apart
/// from nothing.
fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    let middle = times.get(times.len() / 2).copied().unwrap_or_default();
    middle.max(Duration::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// The rates of an evaluation that takes so many microseconds, and how often each size was evaluated.
    fn measured(sizes: &[usize], micros: impl Fn(usize, usize) -> u64) -> (Vec<Rate>, Vec<usize>) {
        let mut runs = vec![0; sizes.len()];
        let rates = rates(sizes, |batch| {
            let at = sizes.iter().position(|&size| size == batch).expect("one of the sizes");
            runs[at] += 1;
            Ok::<_, Infallible>(Duration::from_micros(micros(batch, runs[at])))
        });
        let Ok(rates) = rates;
        (rates, runs)
    }

    #[test]
    fn small_networks_are_evaluated_a_few_times_and_large_ones_for_a_second() {
        let (_, runs) = measured(&[1, 2, 4, 8, 16], |batch, _| 50 * batch as u64);
        assert_eq!(runs, [RUNS_MAX; 5]);
        // 200 ms a size: of 190 ms two, of 12 ms seventeen.
        let (rates, runs) = measured(&[1, 2, 4, 8, 16], |batch, _| 12_000 * batch as u64);
        assert_eq!(runs, [17, 9, 5, 3, 2]);
        assert!(rates.iter().all(|rate| (rate.per_second - 1e6 / 12e3).abs() < 1e-6));
    }

    #[test]
    fn sizes_without_time_left_are_left_out_and_the_first_never_is() {
        let (rates, runs) = measured(&[1, 2, 4, 8], |batch, _| 400_000 * batch as u64);
        assert_eq!(runs, [1, 1, 0, 0]);
        assert_eq!(rates.len(), 2);
        let (rates, runs) = measured(&[1, 2], |_, _| 90_000_000);
        assert_eq!((rates.len(), runs), (1, vec![1, 0]));
    }

    #[test]
    fn the_first_evaluation_and_outliers_do_not_count() {
        let (rates, _) = measured(&[4], |_, run| match run {
            1 => 90_000,
            7 | 8 => 30_000,
            _ => 1_000,
        });
        assert_eq!(
            rates,
            [Rate {
                batch: 4,
                per_second: 4_000.0
            }]
        );
        let (rates, _) = measured(&[1], |_, _| 0);
        assert!(rates[0].per_second.is_finite());
    }

    fn chosen(rates: &[(usize, f64)]) -> Option<usize> {
        let rates: Vec<Rate> = rates
            .iter()
            .map(|&(batch, per_second)| Rate { batch, per_second })
            .collect();
        choose(&rates)
    }

    #[test]
    fn the_smallest_batch_near_the_best_rate_is_chosen() {
        // A CPU: flat from eight on.
        let cpu = [(1, 900.0), (2, 1_000.0), (4, 1_090.0), (8, 1_170.0), (16, 1_180.0)];
        assert_eq!(chosen(&cpu), Some(8));
        // A GPU: every doubling pays.
        let gpu = [(64, 30e3), (128, 55e3), (256, 80e3)];
        assert_eq!(chosen(&gpu), Some(256));
        // Too large is slower.
        assert_eq!(chosen(&[(1, 50.0), (2, 100.0), (4, 90.0)]), Some(2));
        assert_eq!(chosen(&[(1, 96.9), (2, 100.0)]), Some(2));
        assert_eq!(chosen(&[(1, 97.1), (2, 100.0)]), Some(1));
        assert_eq!(chosen(&[(12, 5.0)]), Some(12));
        assert_eq!(chosen(&[]), None);
    }
}
