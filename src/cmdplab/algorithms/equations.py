"""The formulas that every engine shares: scalars in, scalar out, `math` only.

Each docstring states the equation. Symbols are the paper's, in ASCII (docs/notation.md). Equation
and section numbers refer to Kitamura et al. (2024). If the paper's text and its released notebook
differ, the difference is an argument here, never a second function (docs/deviations.md).
Plain Python calls these functions, and numerics/compiling.py makes them callable when compiled.
"""

import math
from types import FunctionType


def iterated_log(x: float) -> float:
    """Return llnp(x) = ln(ln(max(x, e)))   (Section 3)."""
    return math.log(math.log(max(x, math.e)))


def confidence_radius(n: float, iterated: float, log_term: float, cap: float) -> float:
    """Return phi(n) = cap ^ sqrt((iterated llnp(2n) + log_term) / (n v 1))   (Eq. 3; cap: H.1)."""
    return min(cap, math.sqrt((iterated * iterated_log(2.0 * n) + log_term) / max(n, 1.0)))


def count_weight(visits: float, prior: float, unvisited: float) -> float:
    """Return 1 / (n + prior), by which counts become Pbar; `unvisited` if n = 0   (Section 3)."""
    return 1.0 / (visits + prior) if visits > 0.0 else unvisited


def deviation(p: float) -> float:
    """Return sqrt( p (1 - p) ), the standard deviation in an empirical Bernstein width."""
    return math.sqrt(p * max(1.0 - p, 0.0))


def bonus(
    phi: float, roots: float, deviations: float, root: float, dev: float, flat: float, tail: float
) -> float:
    """Return beta = phi (root S + dev D + flat) + tail phi^2.

    S = sum_y sqrt(Pbar(y)) is `roots`, D = sum_y sqrt(Pbar(y)(1 - Pbar(y))) is `deviations`.
    Uniform-PAC (Eq. 3): root = 2, tail = 5X. Bernstein: dev = 2, tail = 14X/3.
    """
    return phi * (root * roots + dev * deviations + flat) + tail * (phi * phi)


def unvisited_bonus(beta: float, visits: float, extra: float) -> float:
    """Return beta + extra [n = 0]: an infinite extra holds an unvisited pair at its cap."""
    return beta + extra if visits == 0.0 else beta


def interval_width(p: float, phi: float, flat: float, dev: float, tail: float) -> float:
    """Return flat phi ^ (dev sqrt(Pbar(y)(1 - Pbar(y))) phi + tail phi^2), beta(y) without its cap.

    Empirical Bernstein: dev = 2, tail = 14/3, flat infinite. Hoeffding: flat alone, tail infinite.
    """
    return min(flat * phi, dev * deviation(p) * phi + tail * (phi * phi))


def scaled_width(width: float, scale: float, cap: float) -> float:
    """Return beta(y) = cap ^ scale width; the theory's scale is 1."""
    return min(cap, scale * width)


def entropy_range(tau: float, log_actions: float) -> float:
    """Return 1 + tau ln A, the largest regularised reward of one step   (Algorithm 2)."""
    return 1.0 + tau * log_actions


def reward_temperature(n: int, tau: float) -> float:
    """Return tau [n = 0]: entropy goes with the objective, not with utilities   (Algorithm 2)."""
    return tau if n == 0 else 0.0


def bonus_weight(multiplier: float, tau: float, entropy: float) -> float:
    """Return m (1 + tau e): printed H (1 + tau ln A) for r^0 and H for the others; released 1."""
    return multiplier * entropy_range(tau, entropy)


def value_cap(steps_left: int, tau: float, log_actions: float) -> float:
    """Return (1 + tau ln A) (H - h + 1), the largest value of the steps left   (Algorithm 2)."""
    return entropy_range(tau, log_actions) * steps_left


def multiplier_cap(cap: float, tau: float, log_actions: float) -> float:
    """Return (H / slack) (1 + tau ln A), at which the multipliers are clipped   (Eq. 5)."""
    return cap * entropy_range(tau, log_actions)


def seen_value(now: float, ahead: float, lookahead: float) -> float:
    """Return the value in the dual step: of pi^k (lookahead 0), or Q~^k under pi^{k+1} (1)."""
    return now + lookahead * (ahead - now)


def action_value(r: float, weight: float, beta: float, next_value: float, cap: float) -> float:
    """Return Q~_h = min( r_h + weight beta_h + Pbar V~_{h+1}, cap )   (Algorithm 2)."""
    return min(r + weight * beta + next_value, cap)


def policy_term(p: float, log_p: float, q: float, tau: float, weighting: float) -> float:
    """Return pi (Q~ - tau ln pi (1 - weighting + weighting pi)), whose sum is V~_h   (Algorithm 2).

    weighting = 0 is the printed entropy; 1 weights it by pi once more, as the notebook does.
    """
    return p * (q - tau * log_p * (1.0 - weighting + weighting * p))


def mixed_policy(p: float, theta: float, uniform: float) -> float:
    """Return (1 - theta) pi + theta / A, the start of OPDOP's policy step   (Ding et al. 2021)."""
    return (1.0 - theta) * p + theta * uniform


def policy_logit(log_p: float, eta: float, tau: float, q: float) -> float:
    """Return (1 - eta tau) ln pi^k + eta Q~^k, whose softmax over a is pi^{k+1}   (Eq. 4)."""
    return (1.0 - eta * tau) * log_p + eta * q


def draw_step(a: int, p: float, u: float, total: float, action: int) -> tuple[float, int, bool]:
    """Return the mass so far of an inverse CDF, the action drawn so far, and True if u is below.

    Rounding may leave u beyond the last sum: then the last action with mass is the one drawn.
    """
    if p > 0.0:
        return total + p, a, u < total + p
    return total, action, False


def reward_sample(r: float, u: float, spread: float) -> float:
    """Return (1 - spread) r + spread [u < r], of mean r: Bernoulli for spread 1, r itself for 0."""
    return (1.0 - spread) * r + spread * (1.0 if u < r else 0.0)


def reward_estimate(total: float, n: float, width: float) -> float:
    """Return r^ = clip( total / n + width, 0, 1 ), total the sum of n samples.

    A width > 0 gives an upper end, 1 if never visited; a width < 0 a lower end, 0 if never visited.
    OPDOP has one more in n, and no width   (Ding et al. 2021).
    """
    if n == 0.0:
        return 1.0 if width > 0.0 else 0.0
    return min(max(total / n + width, 0.0), 1.0)


def queue_step(queue: float, step: float, b: float, margin: float, value: float) -> float:
    """Return [ queue + step (b + margin - V) ]_+, which grows while V is below b + margin."""
    return max(queue + step * (b + margin - value), 0.0)


def multiplier_step(
    lam: float, eta: float, tau: float, b: float, value: float, cap: float
) -> float:
    """Return lambda^{k+1} = clip( lambda + eta (b - V~_1(x_1) - tau lambda), 0, cap )   (Eq. 5)."""
    return min(max(lam + eta * (b - value - tau * lam), 0.0), cap)


def formulas() -> dict[str, FunctionType]:
    """Return every formula of this module, by its name."""
    return {
        name: each
        for name, each in globals().items()
        if isinstance(each, FunctionType) and each is not formulas
    }
