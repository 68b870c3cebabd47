"""The log-likelihood ratio of the pentanomial GSPRT, computed another way than crates/control does.

Reads lines "unit lower upper n0 n1 n2 n3 n4" (n_i pairs that brought i half points) from standard input and prints one
log-likelihood ratio a line. Written from the formulas in docs/gates.md (Van den Bergh): the likeliest distribution
with a given mean is p_i / (1 + x (a_i - mean)); every root here is found by bisection. For normalised Elo the linear
conditions are not iterated: one of them belongs to each standard deviation, and the deviation is sought that its own
distribution has.
"""

import math
import sys

OUTCOMES = [0.0, 0.25, 0.5, 0.75, 1.0]
UNSEEN = 1e-3


def bisect(f, low, high):
    """A root of f, which is positive at low and negative at high."""
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return middle
        if f(middle) > 0:
            low = middle
        else:
            high = middle


def balanced(observed, weights):
    """The likeliest distribution under which the weights have the mean 0; None when there is none."""
    if not min(weights) < 0 < max(weights):
        return None
    pairs = list(zip(observed, weights))
    x = bisect(
        lambda x: sum(p * w / (1 + x * w) if 1 + x * w else math.copysign(math.inf, w) for p, w in pairs),
        -1 / max(weights),
        -1 / min(weights),
    )
    return [p / (1 + x * w) for p, w in pairs]


def with_mean(observed, mean):
    return balanced(observed, [a - mean for a in OUTCOMES])


def with_deviations(observed, t):
    """The likeliest distribution whose mean is t of its standard deviations above 1/2."""

    def fit(deviation):
        mean = 0.5 + t * deviation
        slope = [a - 0.5 - t * deviation / 2 * (1 + ((a - mean) / deviation) ** 2) for a in OUTCOMES]
        return mean, balanced(observed, slope)

    def excess(deviation):
        mean, found = fit(deviation)
        if found is None:
            return None
        return sum(p * (a - mean) ** 2 for p, a in zip(found, OUTCOMES)) - deviation**2

    if t == 0:
        return with_mean(observed, 0.5)
    grid = [0.5 * 0.8**step for step in range(40)]
    found = []
    for high, low in zip(grid, grid[1:]):
        at_low, at_high = excess(low), excess(high)
        if at_low is not None and at_high is not None and at_low > 0 >= at_high:
            found.append(fit(bisect(excess, low, high))[1])
    return max(found, key=lambda fitted: sum(p * math.log(q) for p, q in zip(observed, fitted)))


def log_likelihood_ratio(unit, lower, upper, counts):
    seen = [n or UNSEEN for n in counts]
    total = math.fsum(seen)
    observed = [n / total for n in seen]
    fits = []
    for strength in (lower, upper):
        if unit == "score":
            fits.append(with_mean(observed, strength))
        elif unit == "elo":
            fits.append(with_mean(observed, 1 / (1 + 10 ** (-strength / 400))))
        else:
            fits.append(with_deviations(observed, strength * math.log(10) / 800 * math.sqrt(2)))
    return total * math.fsum(p * math.log(q1 / q0) for p, q0, q1 in zip(observed, *fits))


for line in sys.stdin:
    name, low, high, *pairs = line.split()
    print(repr(log_likelihood_ratio(name, float(low), float(high), [int(n) for n in pairs])))
