"""UOpt-RPGPD in plain vectorised NumPy, in the preset `released`: the notebook of the authors.

What one would write without a compiler and without our tricks: whole-array operations over states,
actions and successors, a Python loop over the steps, one evaluation per reward (Algorithm 2), the
exact value of the policy by the same evaluation on the true kernel. It is the yardstick of
`make bench` and a third oracle in the tests.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.numerics.noise import uniforms


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

    def exact_returns(self) -> list[float]:
        """The value of the policy at the start, reward by reward."""
        none = np.zeros_like(self.policy)
        start = self.problem.start
        values = []
        for reward in self.problem.reward:
            q = self.evaluate(reward, none, self.problem.transition, 0.0)
            values.append(float(self.policy[0, start] @ q[0, start]))
        return values

    def roll_out(self, noise: np.ndarray) -> None:
        """Play the policy by inverse CDF and count."""
        x = self.problem.start
        for h in range(self.H):
            chosen = np.searchsorted(np.cumsum(self.policy[h, x]), noise[h, 0], side="right")
            a = min(int(chosen), self.A - 1)
            found = np.searchsorted(self.cumulative[h, x, a], noise[h, 1], side="right")
            y = min(int(found), self.X - 1)
            self.counts[h, x, a, y] += 1.0
            x = y

    def model(self) -> tuple[np.ndarray, np.ndarray]:
        """Pbar [H, X, A, X] and the bonus [H, X, A]."""
        visits = self.counts.sum(axis=-1)
        seen = np.maximum(visits, 1.0)
        estimate = np.where((visits > 0)[..., None], self.counts / seen[..., None], 1.0 / self.X)
        log = 2.0 * np.log(48.0 * self.X**2 * self.A * self.H / self.delta)
        iterated = np.log(np.log(np.maximum(2.0 * visits, np.e)))
        phi = np.sqrt((2.0 * iterated + log) / seen)
        bonus = self.scale * (np.sqrt(estimate).sum(axis=-1) * phi + 5.0 * phi**2)
        return estimate, bonus

    def evaluate(
        self, reward: np.ndarray, bonus: np.ndarray, kernel: np.ndarray, tau: float
    ) -> np.ndarray:
        """Algorithm 2, with the notebook's entropy and terminal value: Q~ [H, X, A]."""
        q = np.empty_like(self.policy)
        entropy = -tau * self.policy**2 * self.log_policy
        value = entropy[-1].sum(axis=-1)
        for h in reversed(range(self.H)):
            cap = (1.0 + tau * np.log(self.A)) * (self.H - h)
            q[h] = np.minimum(reward[h] + bonus[h] + kernel[h] @ value, cap)
            value = np.sum(self.policy[h] * q[h] + entropy[h], axis=-1)
        return q

    def improve(self) -> None:
        """Evaluate, then one policy step and one dual step (Algorithm 1)."""
        eta, tau = (self.episode + 2.0) ** -0.53, (self.episode + 2.0) ** -0.4
        estimate, bonus = self.model()
        objective = self.evaluate(self.problem.reward[0], bonus, estimate, tau)
        utilities = [self.evaluate(r, bonus, estimate, 0.0) for r in self.problem.reward[1:]]
        total = objective + sum(lam * q for lam, q in zip(self.multiplier, utilities, strict=True))
        logits = (1.0 - eta * tau) * self.log_policy + eta * total
        logits -= logits.max(axis=-1, keepdims=True)
        self.log_policy = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        self.policy = np.exp(self.log_policy)
        start = self.problem.start
        ahead = np.array([self.policy[0, start] @ q[0, start] for q in utilities])
        step = self.problem.threshold - ahead - tau * self.multiplier
        self.multiplier = np.maximum(self.multiplier + eta * step, 0.0)
