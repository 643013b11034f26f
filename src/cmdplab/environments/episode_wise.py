"""The problems on which OPSE was shown: streaming, random tabular and random linear CMDPs, H = 4.

Origin: the code released with Kitamura et al. (2025), Episode-Wise-Safe-Linear-CMDP. Sense: rewards
and utilities; nothing is scaled. The threshold is a share of the largest utility, and the safe
policy there is greedy for the utility, so that its slack is the Slater gap. NumPy draws the
instances here, not JAX: the distributions are the released ones, the numbers are not.

`opse-streaming`: packets in a buffer, 0..5, start 0. Action 0 is the fast link, on which a packet
arrives with probability mu, action 1 the slow one, 1 - mu; one leaves with probability rho. The
level rises with probability (1 - rho) mu_a, falls with rho (1 - mu_a), else stays, as at the ends.
r = 1 at levels above 0 (int(0.3 * 5) = 1), u = 1 on the slow link. The largest utility is H = 4 for
every mu and rho, so b = 2.4 and the gap is 1.6. This instance has mu = 0.7, rho = 0.25 (ours) and
optimum 1.900171875; `opse-streaming-random` draws mu ~ U(0.5, 0.9), rho ~ U(0.1, 0.4) as released.

`opse-tabular`: X = 5, A = 3; r and u are 1 with probability 0.1, else 0, for each (h, x, a); rows
~ Dirichlet(0.1, ..., 0.1); a random start that is fixed; b is 0.6 of the largest utility.

`opse-linear`: X = 100, A = 3, d = 5 features phi(x, a) ~ Dirichlet(0.1), d next-state laws a step
~ Dirichlet(0.1), P = phi mu; r and u are linear in phi with coefficients U(0, 1), scaled so that
the largest is 1; b is 0.68 of the largest utility.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import checked_sizes
from cmdplab.environments.grids import neighbours
from cmdplab.environments.random_cmdp import CONCENTRATION, at_share, stream

HORIZON = 4
LEVELS = 6
LABELS = Labels(tuple(f"buffer {n}" for n in range(LEVELS)), ("fast link", "slow link"))


def opse_streaming(mu: float = 0.7, rho: float = 0.25, name: str = "opse-streaming") -> CMDP:
    """Make `opse-streaming` with arrival rate mu on the fast link and departure rate rho."""
    rate = np.tile([mu, 1.0 - mu], (LEVELS, 1))  # on the fast link, on the slow link
    up, down = (1.0 - rho) * rate, rho * (1.0 - rate)
    kernel = neighbours(up, down, 1.0 - up - down)
    reward = np.zeros((2, HORIZON, LEVELS, 2))
    reward[0, :, 1:], reward[1, :, :, 1] = 1.0, 1.0
    threshold = np.array([0.6 * HORIZON])
    return CMDP(kernel, reward, threshold, 0, name=name, labels=LABELS)


def random_streaming(name: str = "opse-streaming-random", seed: int = 0) -> CMDP:
    """Draw `opse-streaming-random` for an instance seed. NumPy never changes this instance."""
    random = stream(seed)
    mu, rho = random.uniform(0.5, 0.9), random.uniform(0.1, 0.4)
    return opse_streaming(mu, rho, f"{name} (seed {seed})")


def opse_tabular(
    name: str = "opse-tabular",
    seed: int = 0,
    states: int = 5,
    actions: int = 3,
    horizon: int = HORIZON,
) -> CMDP:
    """Draw `opse-tabular` for an instance seed. NumPy never changes this instance."""
    checked_sizes(states=states, actions=actions, horizon=horizon)
    random = stream(seed)
    shape = (horizon, states, actions)
    reward = (random.random_sample((2, *shape)) < 0.1).astype(np.float64)
    kernel = random.dirichlet(np.full(states, CONCENTRATION), shape)
    start = int(random.randint(states))
    return at_share(0.6, kernel, reward, start, f"{name} (seed {seed})")


def opse_linear(
    name: str = "opse-linear",
    seed: int = 0,
    states: int = 100,
    actions: int = 3,
    horizon: int = HORIZON,
    features: int = 5,
) -> CMDP:
    """Draw `opse-linear` for an instance seed. NumPy never changes this instance."""
    checked_sizes(states=states, actions=actions, horizon=horizon, features=features)
    random = stream(seed)
    phi = random.dirichlet(np.full(features, CONCENTRATION), (states, actions))
    laws = random.dirichlet(np.full(states, CONCENTRATION), (horizon, features))
    theta = random.random_sample((2, horizon, features))
    kernel = np.einsum("xad,hdy->hxay", phi, laws)
    kernel /= kernel.sum(axis=-1, keepdims=True)  # rounding
    reward = np.einsum("xad,nhd->nhxa", phi, theta)
    reward /= reward.max(axis=(1, 2, 3), keepdims=True)
    start = int(random.randint(states))
    return at_share(0.68, kernel, reward, start, f"{name} (seed {seed})")
