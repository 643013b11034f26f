"""The paper's random CMDP (Appendix D), in three forms.

P_h(. | x, a) ~ Dirichlet(0.1, ..., 0.1), independent over h, x, a; the start state is drawn once;
b = half of the largest attainable utility. The forms differ in the rewards:

- printed: r^0 is 0 with probability 1/2, else uniform on [0, 1]; r^1 = 1 - r^0   (the paper's text)
- released: r^0 is 0 or 1 with probability 1/2 each; r^1 = 1 - r^0   (the authors' notebook)
- independent: r^0 as printed, and r^1 drawn the same way but independently of r^0   (ours)

With r^1 = 1 - r^0 the values of every policy add up to H, so that gap and violation are one number
and the optimal multiplier is 1 whenever the constraint binds; the third form has no such shortcut.

The constraint of an instance need not bind. With `accept=binds` the instance is drawn again, from
the same stream, until it does; the first draw is that of the plain form.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from cmdplab.cmdp.exact import greedy
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import checked_sizes, drawn
from cmdplab.errors import InputError
from cmdplab.types import Array

CONCENTRATION = 0.1
DRAWS = 1000  # before giving up on an instance that is accepted
SMALL = 1e-6  # a multiplier
# NumPy promises that RandomState draws the same numbers for ever; its Generator does not.
Draw = Callable[[np.random.RandomState, tuple[int, ...]], tuple[Array, Array]]
Accept = Callable[[CMDP], bool]


def printed_rewards(random: np.random.RandomState, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Draw (r^0, r^1) as the paper prints them."""
    objective = zero_or_uniform(random, shape)
    return objective, 1.0 - objective


def released_rewards(random: np.random.RandomState, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Draw (r^0, r^1) as the authors' notebook draws them."""
    objective = (random.random_sample(shape) < 0.5).astype(np.float64)
    return objective, 1.0 - objective


def independent_rewards(
    random: np.random.RandomState, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Draw r^0 and r^1 independently of each other."""
    return zero_or_uniform(random, shape), zero_or_uniform(random, shape)


def anything(problem: CMDP) -> bool:
    """Accept every instance."""
    return True


def random_cmdp(
    rewards: Draw,
    name: str,
    seed: int = 0,
    states: int = 30,
    actions: int = 3,
    horizon: int = 10,
    accept: Accept = anything,
) -> CMDP:
    """Draw the instance of a seed. It stays the same in every version of NumPy."""
    checked_sizes(states=states, actions=actions, horizon=horizon)
    random = stream(seed)
    shape = (horizon, states, actions)

    def draw() -> CMDP:
        kernel = random.dirichlet(np.full(states, CONCENTRATION), shape)
        start = int(random.randint(states))
        reward = np.stack(rewards(random, shape))
        return at_share(0.5, kernel, reward, start, f"{name} (seed {seed})")

    return first_accepted(draw, accept)


def stream(seed: int) -> np.random.RandomState:
    """Return the random numbers of an instance."""
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))


def zero_or_uniform(
    random: np.random.RandomState, shape: tuple[int, ...], zeros: float = 0.5
) -> Array:
    """Draw numbers that are 0 with probability `zeros`, else uniform on [0, 1]."""
    zero = random.random_sample(shape) < zeros
    return np.where(zero, 0.0, random.random_sample(shape))


def at_share(share: float, kernel: Array, reward: Array, start: int, name: str) -> CMDP:
    """Make a problem with one threshold, a share of the largest utility: b = share max_pi
    V[r^1].
    """
    free = CMDP(kernel, reward, np.zeros(1), start)
    threshold = share * greedy(free, reward[1])[0]
    return CMDP(kernel, reward, np.array([threshold]), start, name=name)


def first_accepted(draw: Callable[[], CMDP], accept: Accept) -> CMDP:
    """Draw problems until one is accepted, and return it."""
    for _ in range(DRAWS):
        problem = draw()
        if accept(problem):
            return problem
    raise InputError(f"{problem.name}: none of {DRAWS} draws was accepted")


def binds(problem: CMDP) -> bool:
    """Return True if some constraint has an optimal multiplier above zero.

    d(l) = max_pi V[r^0 + l r^n] - l b^n is convex, so d(l) < d(0) for one l > 0 proves it. A
    multiplier below 1e-6 counts as zero, as does a miss of less than 1e-3 without the constraint.
    """
    free = greedy(problem, problem.reward[0])[0]
    for utility, threshold in zip(problem.reward[1:], problem.threshold, strict=True):
        priced = greedy(problem, problem.reward[0] + SMALL * utility)[0] - SMALL * threshold
        if priced < free - 1e-3 * SMALL:
            return True
    return False


_PAPER = "Kitamura et al. (2024), Appendix D"
_CODE = "Kitamura et al. (2024), code"
_printed = partial(random_cmdp, printed_rewards)
_released = partial(random_cmdp, released_rewards)
_independent = partial(random_cmdp, independent_rewards)
_printed_binding = partial(_printed, accept=binds)
_independent_binding = partial(_independent, accept=binds)
_EITHER = "reward and utility independent, each 0 or uniform"
_REDRAWN = "form, redrawn until it binds"

ENTRIES = {
    **drawn("random-printed", _printed, "rewards 0 or uniform, utility 1 - reward", _PAPER),
    **drawn("random-released", _released, "rewards 0 or 1, utility 1 - reward", _CODE),
    **drawn("random-independent", _independent, _EITHER, "ours"),
    **drawn(
        "random-printed-binding",
        _printed_binding,
        f"the first {_REDRAWN}",
        f"{_PAPER}; redrawing ours",
    ),
    **drawn("random-independent-binding", _independent_binding, f"the third {_REDRAWN}", "ours"),
}
