"""UOpt-RPGPD (released preset) in plain vectorised NumPy: what one would write without a compiler.

Every array operation covers all states, actions and successors at once; only the steps of an
episode are a Python loop. It is the yardstick of `make bench` and a third oracle in the tests.
"""

from __future__ import annotations

import numpy as np

from cmdplab.noise import uniforms
from cmdplab.problem import CMDP


class NumpyUOpt:
    """The learner, its environment and the exact returns, in natural axes."""

    def __init__(self, problem: CMDP, seed: int, delta: float = 0.1, scale: float = 1e-3) -> None:
        self.problem, self.seed, self.delta, self.scale = problem, seed, delta, scale
        self.H, self.X, self.A = problem.horizon, problem.states, problem.actions
        self.counts = np.zeros((self.H, self.X, self.A, self.X))
        self.policy = np.full((self.H, self.X, self.A), 1.0 / self.A)
        self.log_policy = np.log(self.policy)
        self.multiplier = np.zeros(problem.constraints)
        self.cumulative = np.cumsum(problem.transition, axis=-1)
        self.episode = 0

    def play(self, episodes: int) -> tuple[np.ndarray, np.ndarray]:
        """Exact returns [E, 1 + N] and multipliers [E, N] of the next episodes."""
        noise = uniforms(self.seed, self.episode + 1, episodes, self.H)
        returns = np.empty((episodes, 1 + self.problem.constraints))
        multipliers = np.empty((episodes, self.problem.constraints))
        for k in range(episodes):
            returns[k] = self.exact_returns()
            self.roll_out(noise[k])
            self.episode += 1
            self.improve()
            multipliers[k] = self.multiplier
        return returns, multipliers

    def exact_returns(self) -> np.ndarray:
        total = np.zeros(len(self.problem.reward))
        here = np.zeros(self.X)
        here[self.problem.start] = 1.0
        for h in range(self.H):
            pairs = here[:, None] * self.policy[h]
            total += np.einsum("nxa,xa->n", self.problem.reward[:, h], pairs)
            here = np.einsum("xa,xay->y", pairs, self.problem.transition[h])
        return total

    def roll_out(self, noise: np.ndarray) -> None:
        x = self.problem.start
        for h in range(self.H):
            chosen = np.searchsorted(np.cumsum(self.policy[h, x]), noise[h, 0], side="right")
            a = min(int(chosen), self.A - 1)
            found = np.searchsorted(self.cumulative[h, x, a], noise[h, 1], side="right")
            y = min(int(found), self.X - 1)
            self.counts[h, x, a, y] += 1.0
            x = y

    def model(self) -> tuple[np.ndarray, np.ndarray]:
        visits = self.counts.sum(axis=-1)
        seen = np.maximum(visits, 1.0)
        estimate = np.where((visits > 0)[..., None], self.counts / seen[..., None], 1.0 / self.X)
        log = 2.0 * np.log(48.0 * self.X**2 * self.A * self.H / self.delta)
        iterated = np.log(np.log(np.maximum(2.0 * visits, np.e)))
        phi = np.sqrt((2.0 * iterated + log) / seen)
        bonus = self.scale * (np.sqrt(estimate).sum(axis=-1) * phi + 5.0 * phi**2)
        return estimate, bonus

    def improve(self) -> None:
        eta, tau = (self.episode + 2.0) ** -0.53, (self.episode + 2.0) ** -0.4
        estimate, bonus = self.model()
        entropy = -tau * self.policy**2 * self.log_policy
        value = np.zeros((len(self.problem.reward), self.X))
        value[0] = entropy[-1].sum(axis=-1)
        lagrangian = np.empty_like(self.policy)
        cap = np.ones(len(value))
        cap[0] += tau * np.log(self.A)
        for h in reversed(range(self.H)):
            ahead = np.einsum("xay,ny->nxa", estimate[h], value)
            q = self.problem.reward[:, h] + bonus[h] + ahead
            q = np.minimum(q, (cap * (self.H - h))[:, None, None])
            value = np.einsum("xa,nxa->nx", self.policy[h], q)
            value[0] += entropy[h].sum(axis=-1)
            lagrangian[h] = q[0] + np.tensordot(self.multiplier, q[1:], axes=1)
        logits = (1.0 - eta * tau) * self.log_policy + eta * lagrangian
        logits -= logits.max(axis=-1, keepdims=True)
        self.log_policy = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        self.policy = np.exp(self.log_policy)
        start = self.problem.start
        ahead = q[1:, start] @ self.policy[0, start]
        step = self.problem.threshold - ahead - tau * self.multiplier
        self.multiplier = np.maximum(self.multiplier + eta * step, 0.0)
