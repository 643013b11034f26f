"""The primal-dual family in plain Python: the algorithm as one reads it, the oracle of the rest.

Slow on purpose: loops over natural indices, formulas from equations.py called one number at a time.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms import equations as eq
from cmdplab.algorithms.counts import all_visits
from cmdplab.algorithms.families.primal_dual import PrimalDual, PrimalDualNumbers, PrimalDualState
from cmdplab.algorithms.learner import Episode
from cmdplab.types import Array
from oracles.learner import PlainLearner, counted, estimated, radius_of, summed


class Evaluation(NamedTuple):
    """Optimistic values of the current policy."""

    q: Array  # [1 + N, H, X, A]
    value: Array  # [1 + N, H + 1, X]


class PlainPrimalDual(PlainLearner[PrimalDual, PrimalDualNumbers]):
    """The learner of one row and one task."""

    def init(self) -> PrimalDualState:
        """Before the first episode."""
        return PrimalDualState.initial(self.row, self.task)

    def observe(self, state: PrimalDualState, episode: Episode) -> PrimalDualState:
        """Count one episode, evaluate the policy that played it, and improve."""
        counts, ends = counted(state.counts, state.ends, episode, self.numbers.visit)
        sums = summed(self.task, state.reward_sums, episode)
        seen = state._replace(counts=counts, ends=ends, reward_sums=sums)
        return self.improve(seen._replace(episode=state.episode + 1))

    def improve(self, state: PrimalDualState) -> PrimalDualState:
        """One policy step and one dual step on the counts as they are."""
        eta, dual_eta, tau, margin = self.row.schedule(self.task, max(state.episode, 1), 1)[0]
        q, value = self.evaluate(state, tau)
        log_policy = self._policy_step(state, q, eta, tau)
        policy = np.exp(log_policy)
        multiplier = self._dual_step(state, q, value, policy, dual_eta, tau, margin)
        return state._replace(log_policy=log_policy, policy=policy, multiplier=multiplier)

    def evaluate(self, state: PrimalDualState, tau: float) -> Evaluation:
        """Algorithm 2 for every reward: entropy with the objective only."""
        n = self.numbers
        rewards, H, X, A = self.task.reward.shape
        estimate, beta = self.model(state)
        reward = self.rewards(state)
        q = np.zeros((rewards, H, X, A))
        value = np.zeros((rewards, H + 1, X))
        for i in range(rewards):
            soft = eq.reward_temperature(i, tau)
            weight = eq.bonus_weight(n.bonus_multiplier, soft, n.bonus_entropy)
            value[i, H] = self._values(state, H - 1, np.zeros((X, A)), soft * n.terminal_entropy)
            for h in reversed(range(H)):
                cap = eq.value_cap(H - h, soft, n.log_actions)
                for x in range(X):
                    for a in range(A):
                        ahead = float(estimate[h, x, a] @ value[i, h + 1])
                        r = reward[i, h, x, a]
                        q[i, h, x, a] = eq.action_value(r, weight, beta[h, x, a], ahead, cap)
                value[i, h] = self._values(state, h, q[i, h], soft)
        return Evaluation(q, value)

    def model(self, state: PrimalDualState) -> tuple[Array, Array]:
        """Pbar [H, X, A, X] and the bonus [H, X, A]."""
        n, (_, H, X, A) = self.numbers, self.task.reward.shape
        estimate, beta = np.zeros((H, X, A, X)), np.zeros((H, X, A))
        every = all_visits(state.counts.sum(axis=-1), state.ends)
        for h, x, a in np.ndindex(H, X, A):
            place = (min(h, len(every) - 1), x, a)
            counts, visits = state.counts[place], float(every[place])
            moves = counts.sum()
            row = counts / (moves + n.prior_visits) if moves else np.full(X, n.unvisited_mass / X)
            m = visits + n.prior_visits
            phi = eq.confidence_radius(m, n.iterated, n.log, n.radius_cap)
            roots = sum(math.sqrt(p) for p in row)
            deviations = sum(eq.deviation(p) for p in row)
            estimate[h, x, a] = row
            seen = eq.bonus(phi, roots, deviations, n.root, n.dev, n.flat, n.tail)
            beta[h, x, a] = eq.unvisited_bonus(seen, visits, n.unvisited_extra)
        return estimate, beta

    def rewards(self, state: PrimalDualState) -> Array:
        """[1 + N, H, X, A]: what is known, or upper ends (OPDOP: means) of what was observed."""
        if not len(state.reward_sums):
            return self.task.reward
        n, layer = self.numbers, self.layers_of(state.counts)
        visits = all_visits(state.counts.sum(axis=-1), state.ends)[layer]
        radius = radius_of(visits, n.iterated, n.log, np.inf)
        scale = [n.reward_scale] * len(self.task.reward)
        sums, seen = state.reward_sums[:, layer], visits + n.prior_visits
        return estimated(self.task, sums, seen, radius, scale)

    def _values(self, state: PrimalDualState, h: int, q: Array, tau: float) -> list[float]:
        weighting = self.numbers.entropy_weighting
        policy, log_policy = state.policy[h], state.log_policy[h]
        X, A = q.shape
        return [
            sum(
                eq.policy_term(policy[x, a], log_policy[x, a], q[x, a], tau, weighting)
                for a in range(A)
            )
            for x in range(X)
        ]

    def _policy_step(self, state: PrimalDualState, q: Array, eta: float, tau: float) -> Array:
        log_policy = np.empty_like(state.log_policy)
        theta, share = self.numbers.mixing, 1.0 / log_policy.shape[2]
        weights = [1.0, *state.multiplier]
        for h, x in np.ndindex(*log_policy.shape[:2]):
            logits = []
            for a in range(log_policy.shape[2]):
                total = sum(w * q[i, h, x, a] for i, w in enumerate(weights))
                total += self.task.closed[h, x, a]
                log_p = state.log_policy[h, x, a]
                if theta > 0.0:
                    log_p = math.log(eq.mixed_policy(state.policy[h, x, a], theta, share))
                logits.append(eq.policy_logit(log_p, eta, tau, total))
            top = max(logits)
            mass = sum(math.exp(logit - top) for logit in logits)
            log_policy[h, x] = [logit - top - math.log(mass) for logit in logits]
        return log_policy

    def _dual_step(
        self,
        state: PrimalDualState,
        q: Array,
        value: Array,
        policy: Array,
        eta: float,
        tau: float,
        margin: float,
    ) -> Array:
        n, start = self.numbers, self.task.start
        cap = eq.multiplier_cap(n.dual_cap, tau, n.log_actions)
        multiplier = np.empty_like(state.multiplier)
        for i, lam in enumerate(state.multiplier):
            now = value[i + 1, 0, start]
            ahead = float(policy[0, start] @ q[i + 1, 0, start])
            seen = eq.seen_value(now, ahead, n.dual_lookahead)
            b = self.task.threshold[i] + margin
            multiplier[i] = eq.multiplier_step(lam, eta, tau, b, seen, cap)
        return multiplier
