"""Random CMDPs without structure, and the instance behind the paper's Figure 1."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.resources import files

import numpy as np

from cmdplab.cmdp.exact import greedy, returns
from cmdplab.cmdp.horizons import with_random_start
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import checked_sizes
from cmdplab.errors import InputError
from cmdplab.types import Array


def published() -> CMDP:
    """Make the CMDP behind the paper's Figure 1: X = 30, A = 3, H = 10, one constraint.

    The arrays are numbers regenerated from the released generator's seed 12; no code was copied.
    They were float32, so the rows of the kernel are normalised here in float64. The threshold is
    used as the notebook rounded it. Optimum 5.18840, multiplier 1, largest utility 2b to 1e-6.
    """
    file = files("cmdplab") / "data" / "published.npz"  # ours as much as the code: no guard
    with file.open("rb") as stream, np.load(stream) as archive:
        arrays = dict(archive)
    kernel = arrays["transition"].astype(np.float64)
    kernel /= kernel.sum(axis=-1, keepdims=True)
    objective = arrays["objective"].astype(np.float64)
    reward = np.stack([objective, 1.0 - objective])
    start = int(arrays["start"])
    return CMDP(kernel, reward, arrays["threshold"], start, name="published")


CONCENTRATION = 0.1
DRAWS = 1000  # the most draws of an instance until one is accepted
SMALL = 1e-6  # smaller multipliers count as zero
# NumPy promises that RandomState draws the same numbers for ever; its Generator does not.
Draw = Callable[[np.random.RandomState, tuple[int, ...]], tuple[Array, Array]]
Accept = Callable[[CMDP], bool]


def printed_rewards(random: np.random.RandomState, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Draw r^0 and r^1 = 1 - r^0, of this shape each, as the paper prints them."""
    objective = zero_or_uniform(random, shape)
    return objective, 1.0 - objective


def released_rewards(random: np.random.RandomState, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Draw r^0 and r^1 = 1 - r^0, of this shape each, as the authors' notebook draws them."""
    objective = (random.random_sample(shape) < 0.5).astype(np.float64)
    return objective, 1.0 - objective


def independent_rewards(
    random: np.random.RandomState, shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Draw r^0 and r^1, of this shape each, independently of each other."""
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
    """Draw the paper's random CMDP (Appendix D) for an instance seed, with one of three rewards.

    P_h(. | x, a) ~ Dirichlet(0.1, ..., 0.1), independent over h, x, a; the start state is drawn
    once; b = half of the largest attainable utility. NumPy never changes the instance of a seed.
    The forms differ in the function `rewards`:

    - printed: r^0 is 0 with probability 1/2, else uniform on [0, 1]; r^1 = 1 - r^0   (the paper's
      text)
    - released: r^0 is 0 or 1 with probability 1/2 each; r^1 = 1 - r^0   (the authors' notebook)
    - independent: r^0 as printed, and r^1 drawn the same way but independently of r^0   (ours)

    With r^1 = 1 - r^0 the values of every policy add up to H, so that gap and violation are one
    number and the optimal multiplier is 1 whenever the constraint binds; the third form has no such
    shortcut.

    The constraint of an instance need not bind. With `accept=binds` the instance is drawn again,
    from the same stream, until it does; the first draw is that of the plain form.
    """
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
    """Return the generator of random numbers for an instance seed."""
    return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)))


def zero_or_uniform(
    random: np.random.RandomState, shape: tuple[int, ...], zeros: float = 0.5
) -> Array:
    """Draw an array of numbers that are 0 with probability `zeros`, else uniform on [0, 1]."""
    zero = random.random_sample(shape) < zeros
    return np.where(zero, 0.0, random.random_sample(shape))


def at_share(share: float, kernel: Array, reward: Array, start: int, name: str) -> CMDP:
    """Make a problem whose threshold is a share of the largest utility: b = share max_pi V[r^1]."""
    free = CMDP(kernel, reward, np.zeros(1), start)
    threshold = share * greedy(free, reward[1])[0]
    return CMDP(kernel, reward, np.array([threshold]), start, name=name)


def first_accepted(draw: Callable[[], CMDP], accept: Accept) -> CMDP:
    """Return the first of the drawn problems that `accept` accepts; give up after 1,000 draws."""
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


printed = partial(random_cmdp, printed_rewards, "random-printed")
released = partial(random_cmdp, released_rewards, "random-released")
independent = partial(random_cmdp, independent_rewards, "random-independent")
printed_binding = partial(random_cmdp, printed_rewards, "random-printed-binding", accept=binds)
independent_binding = partial(
    random_cmdp, independent_rewards, "random-independent-binding", accept=binds
)


def random_dann(
    name: str = "random-dann", seed: int = 0, states: int = 50, actions: int = 3, horizon: int = 10
) -> CMDP:
    """Draw the random MDP of Dann, Lattimore & Brunskill (2017), with a utility: X = 51, A = 3,
    H = 11.

    Origin: the generator released with UBEV: S states (5, 50 or 200; here 50), 3 actions, 10 steps.
    P_h(. | x, a) ~ Dirichlet(0.1, ..., 0.1), independent over h, x, a; rewards are 0 with
    probability 0.85, else uniform on [0, 1]; the start distribution is drawn from Dirichlet(0.1,
    ..., 0.1). Three differences from the paper's random CMDP: sparser rewards, a random start,
    other sizes.

    The source has no constraint. Ours: a utility drawn like the reward, independently of it, and
    half of its largest value as the threshold. The random start is a step of its own, from state
    50, without reward, so that H = 11. The stream of random numbers is ours.
    """
    checked_sizes(states=states, actions=actions, horizon=horizon)
    random = stream(seed)
    shape = (horizon, states, actions)
    concentration = np.full(states, CONCENTRATION)
    kernel = random.dirichlet(concentration, shape)
    first = random.dirichlet(concentration)
    reward = np.stack([zero_or_uniform(random, shape, 0.85) for _ in range(2)])
    return at_share(0.5, *with_random_start(kernel, reward, first), f"{name} (seed {seed})")


# Problems of few states for checks of learners, solvers and engines.
SHAPES = {  # states, actions, horizon, constraints
    "small": (4, 3, 3, 1),
    "one action": (3, 1, 2, 1),
    "one state": (1, 3, 2, 1),
    "one step": (5, 2, 1, 1),
    "no constraint": (5, 3, 3, 0),
    "three constraints": (9, 2, 3, 3),
    "two lines of states": (11, 4, 2, 2),
}


def random_problem(
    states: int,
    actions: int,
    horizon: int,
    constraints: int,
    seed: int = 0,
    concentration: float = 0.3,
    closed: float = 0.0,
    stationary: bool = False,
) -> CMDP:
    """Return a random problem of these sizes. One random policy exceeds every threshold.

    concentration : of the Dirichlet distribution of each row of the kernel.
    closed : the share of actions that the mask closes; one action of each state stays open.
    stationary : True makes kernel, rewards and mask the same at every step.
    """
    X, A, H, N = states, actions, horizon, constraints
    rng = np.random.default_rng([seed, X, A, H, N])
    kernel = rng.dirichlet(np.full(X, concentration), (H, X, A))
    reward = rng.random((1 + N, H, X, A))
    start = int(rng.integers(X))
    policy = rng.dirichlet(np.full(A, 0.3), (H, X))
    mask = rng.random((H, X, A)) >= closed
    mask |= policy == policy.max(axis=-1, keepdims=True)
    if stationary:
        kernel, reward, mask = kernel[0], np.repeat(reward[:, :1], H, axis=1), mask[0]
    free = CMDP(kernel, reward, np.zeros(N), start, mask=mask)
    policy = np.where(mask, policy, 0.0)
    policy /= policy.sum(axis=-1, keepdims=True)
    name = f"random {X} {A} {H} {N}" + (", masked" if closed else "")
    thresholds = 0.95 * returns(free, policy)[1:]
    return CMDP(kernel, reward, thresholds, start, name=name, mask=mask)
