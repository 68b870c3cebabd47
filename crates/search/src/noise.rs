//! Random draws of the search: uniform numbers, weighted choices and Dirichlet noise.
//!
//! The samplers are our own, so that recorded games and golden trees do not depend on how another crate maps random
//! bits to distributions.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A uniform number in the open interval (0, 1): the middle of one of 2^52 equal cells, so that its logarithm is finite.
pub(crate) fn uniform(rng: &mut Xoshiro256PlusPlus) -> f64 {
    const CELLS: f64 = (1_u64 << 52) as f64;
    ((rng.next_u64() >> 12) as f64 + 0.5) / CELLS
}

/// The index of a weight drawn with probability proportional to it, or `None` when no weight is positive.
pub(crate) fn weighted_index(
    weights: impl Iterator<Item = f64> + Clone,
    rng: &mut Xoshiro256PlusPlus,
) -> Option<usize> {
    let total: f64 = weights.clone().sum();
    let mut left = uniform(rng) * total;
    let mut last_positive = None;
    for (index, weight) in weights.enumerate().filter(|&(_, weight)| weight > 0.0) {
        last_positive = Some(index);
        left -= weight;
        if left < 0.0 {
            break;
        }
    }
    last_positive
}

/// Fills `out` with `len` numbers drawn from the symmetric Dirichlet distribution: positive or zero, sum one. `variates`
/// is memory for the work.
///
/// The Gamma variates stay logarithms until they are normalised: for the small concentrations of large boards all of
/// them would underflow to zero together.
pub(crate) fn dirichlet(
    alpha: f64,
    len: usize,
    rng: &mut Xoshiro256PlusPlus,
    variates: &mut Vec<f64>,
    out: &mut Vec<f32>,
) {
    variates.clear();
    variates.extend((0..len).map(|_| ln_gamma_variate(alpha, rng)));
    let greatest = variates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for variate in variates.iter_mut() {
        *variate = (*variate - greatest).exp();
    }
    let sum: f64 = variates.iter().sum();
    out.clear();
    out.extend(variates.iter().map(|variate| (variate / sum) as f32));
}

/// The logarithm of a Gamma(alpha, 1) variate.
///
/// For alpha < 1 it is Gamma(alpha + 1) times U^(1 / alpha) (Marsaglia and Tsang 2000, section 6).
fn ln_gamma_variate(alpha: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    if alpha < 1.0 {
        let boost = uniform(rng).ln() / alpha;
        return gamma_variate(alpha + 1.0, rng).ln() + boost;
    }
    gamma_variate(alpha, rng).ln()
}

/// A Gamma(alpha, 1) variate for alpha >= 1 (Marsaglia and Tsang 2000, "A simple method for generating gamma
/// variables", without the squeeze step: speed does not matter here).
fn gamma_variate(alpha: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    let d = alpha - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal_variate(rng);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && uniform(rng).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

/// A standard normal variate (Marsaglia's polar method; the second variate of the pair is not kept).
fn normal_variate(rng: &mut Xoshiro256PlusPlus) -> f64 {
    loop {
        let x = 2.0 * uniform(rng) - 1.0;
        let y = 2.0 * uniform(rng) - 1.0;
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn mean_and_variance(draw: impl FnMut() -> f64) -> (f64, f64) {
        let draws: Vec<f64> = std::iter::repeat_with(draw).take(100_000).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        (mean, variance)
    }

    #[test]
    fn gamma_variates_have_mean_and_variance_alpha() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for alpha in [0.03, 0.3, 1.0, 2.5, 10.0] {
            let (mean, variance) = mean_and_variance(|| ln_gamma_variate(alpha, &mut rng).exp());
            assert!((mean / alpha - 1.0).abs() < 0.06, "alpha {alpha}: mean {mean}");
            assert!(
                (variance / alpha - 1.0).abs() < 0.15,
                "alpha {alpha}: variance {variance}"
            );
        }
    }

    #[test]
    fn dirichlet_components_have_the_right_spread() {
        // The variance of one of k components is (1/k)(1 - 1/k) / (k alpha + 1).
        let (k, alpha) = (7, 10.0 / 7.0);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let (mut variates, mut noise) = (Vec::new(), Vec::new());
        let (mean, variance) = mean_and_variance(|| {
            dirichlet(alpha, k, &mut rng, &mut variates, &mut noise);
            f64::from(noise[3])
        });
        let expected = (1.0 / 7.0) * (6.0 / 7.0) / (7.0 * alpha + 1.0);
        assert!((mean - 1.0 / 7.0).abs() < 0.002, "mean {mean}");
        assert!(
            (variance / expected - 1.0).abs() < 0.03,
            "variance {variance}, expected {expected}"
        );
    }

    #[test]
    fn dirichlet_survives_concentrations_that_underflow() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let (mut variates, mut noise) = (Vec::new(), Vec::new());
        for _ in 0..1000 {
            dirichlet(1e-4, 5, &mut rng, &mut variates, &mut noise);
            let sum: f32 = noise.iter().sum();
            assert!(
                (sum - 1.0).abs() < 1e-5 && noise.iter().all(|part| part.is_finite()),
                "{noise:?}"
            );
        }
    }

    #[test]
    fn weighted_choice_follows_the_weights_and_never_takes_a_zero() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        let mut counts = [0; 4];
        for _ in 0..10_000 {
            counts[weighted_index([0.0, 1.0, 3.0, 0.0].into_iter(), &mut rng).unwrap()] += 1;
        }
        assert_eq!((counts[0], counts[3]), (0, 0));
        assert!((2300..2700).contains(&counts[1]), "{counts:?}");
        assert_eq!(weighted_index([0.0, 0.0].into_iter(), &mut rng), None);
        assert_eq!(weighted_index(std::iter::empty(), &mut rng), None);
    }
}
