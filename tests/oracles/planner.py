"""The planning family in plain Python: the algorithm as one reads it, the oracle of the rest.

Counts, widths, signals, queues and baselines are loops over natural indices; the linear program is
`solvers.plan`, which has its own oracle (HiGHS, in the tests).
"""

from __future__ import annotations

import numpy as np

from cmdplab.algorithms import equations as eq
from cmdplab.algorithms.counts import all_visits
from cmdplab.algorithms.families.planner import (
    NEVER,
    Planner,
    PlannerNumbers,
    PlannerState,
    asks_for_plan,
    safe_target,
    samples_of_width,
    signal,
)
from cmdplab.algorithms.learner import Episode
from cmdplab.algorithms.running.boxes import box_ends, box_half
from cmdplab.solvers import Box, Plan, plan, policy_bounds
from cmdplab.solvers.box import poured
from cmdplab.solvers.value_iteration import FINE, TIE
from cmdplab.types import Array
from oracles.learner import PlainLearner, counted, estimated, radius_of, summed


class PlainPlanner(PlainLearner[Planner, PlannerNumbers]):
    """The learner of one row and one task."""

    def init(self) -> PlannerState:
        """Before the first episode: planned on no data."""
        return self.plan(PlannerState.initial(self.row, self.task), weight=0.0)

    def observe(self, state: PlannerState, episode: Episode) -> PlannerState:
        """Count one episode, update the queue, and plan anew if it is time."""
        counts, ends = counted(state.counts, state.ends, episode, 1.0)
        step, margin, weight = self.row.schedule(self.task, state.episode + 1, 1)[0]
        owed = zip(state.queue, self.task.threshold, state.promised[1:], strict=True)
        state = state._replace(
            counts=counts,
            ends=ends,
            reward_sums=summed(self.task, state.reward_sums, episode),
            queue=np.array([eq.queue_step(q, step, b, margin, value) for q, b, value in owed]),
            baseline_episodes=state.baseline_episodes + state.on_baseline,
            episode=state.episode + 1,
        )
        return self.plan(state, weight) if self._due(state, episode) else state

    def model(self, state: PlannerState) -> tuple[Box, Array]:
        """The plausible kernels, and the rewards [1 + N, H, X, A] to plan with."""
        n, (_, H, X, A) = self.numbers, self.task.reward.shape
        lower, upper, hope, fear = (np.zeros((H, X, A, X)) for _ in range(4))
        possible = np.ones((X, A, X)) if self.task.support is None else 1.0 * self.task.support
        every = all_visits(state.counts.sum(axis=-1), state.ends)
        for h, x, a in np.ndindex(H, X, A):
            place = (min(h, len(every) - 1), x, a)
            row = state.counts[place]
            moves = row.sum()
            visits = samples_of_width(n.freedom, moves, float(every[place]))
            phi = eq.confidence_radius(visits, 0.0, n.log, np.inf)
            for y in range(X):
                p = row[y] / moves if moves else possible[x, a, y] / possible[x, a].sum()
                width = eq.interval_width(p, phi, n.flat, n.dev, n.tail)
                hope[h, x, a, y] = eq.scaled_width(width, n.bonus_scale, n.cap)
                fear[h, x, a, y] = eq.scaled_width(width, n.margin_scale, n.cap)
                half = box_half(n.freedom, hope[h, x, a, y], moves)
                ends = box_ends(p, half, possible[x, a, y])
                lower[h, x, a, y], upper[h, x, a, y] = ends
        bonus, margin = (np.cumsum(each, axis=-1)[..., -1] for each in (hope, fear))
        rewards = self.rewards(state)
        rewards[0] = signal(rewards[0], n.objective_bonus, bonus, 0.0, margin)
        rewards[1:] = signal(rewards[1:], n.utility_bonus, bonus, n.utility_margin, margin)
        return Box(lower, upper, self.task.mask), rewards

    def rewards(self, state: PlannerState) -> Array:
        """[1 + N, H, X, A]: what is known, or the ends of what was observed, to plan with."""
        n, layer = self.numbers, self.layers_of(state.counts)
        visits = all_visits(state.counts.sum(axis=-1), state.ends)[layer]
        radius = radius_of(visits, 0.0, n.log, np.inf)
        scale = [n.objective_width] + [n.utility_width] * len(self.task.threshold)
        reward = estimated(self.task, state.reward_sums[:, layer], visits, radius, scale)
        if self.task.observed:
            reward[0] += n.reward_bonus * n.objective_width * radius
        return reward

    def plan(self, state: PlannerState, weight: float) -> PlannerState:
        """The policy of the next episode."""
        box, reward = self.model(state)
        state = state._replace(planned=all_visits(state.counts.sum(axis=-1), state.ends))
        task, n, baseline = self.task, self.numbers, self.task.baseline
        if baseline is not None and self._must_wait(state, box, reward):
            return self._on_baseline(state)
        if not n.searched:
            multiplier = weight * state.queue
            policy, promised = self._greedy(box, reward, multiplier)
            return state._replace(
                policy=policy, promised=promised, multiplier=multiplier, on_baseline=0
            )
        found = plan(box, reward, task.threshold, task.start, state.multiplier)
        if baseline is not None and not found.feasible:
            return self._on_baseline(state)
        return state._replace(
            policy=self._completed(found),
            promised=found.returns,
            multiplier=found.multiplier if found.feasible else state.multiplier,
            on_baseline=0,
        )

    def _completed(self, found: Plan) -> Array:
        """The plan's policy; where it never comes, a share of it is uniform."""
        policy, share = found.policy.copy(), self.numbers.uniform_elsewhere
        for h, x in np.argwhere(found.occupancy.sum(axis=-1) <= NEVER):
            for a, uniform in enumerate(self.task.uniform[h, x]):
                policy[h, x, a] = eq.mixed_policy(policy[h, x, a], share, uniform)
        return policy

    def _must_wait(self, state: PlannerState, box: Box, reward: Array) -> bool:
        """Whether the safe policy is played in any case."""
        n, task, baseline = self.numbers, self.task, self.task.baseline
        assert baseline is not None
        if state.episode < n.warm_up:
            return True
        if n.caution == -np.inf:
            return False
        safe = policy_bounds(box, reward, baseline.policy, task.start)
        return any(
            value <= safe_target(b, known, n.caution)
            for value, b, known in zip(safe[1:], task.threshold, baseline.returns[1:], strict=True)
        )

    def _on_baseline(self, state: PlannerState) -> PlannerState:
        baseline = self.task.baseline
        assert baseline is not None
        return state._replace(policy=baseline.policy, promised=baseline.returns, on_baseline=1)

    def _greedy(self, box: Box, reward: Array, multiplier: Array) -> tuple[Array, Array]:
        """Backward: the best row of the box and the best action for the weighted values."""
        rewards, H, X, A = reward.shape
        weights = np.array([1.0, *multiplier])
        policy, value = np.zeros((H, X, A)), np.zeros((rewards, X))
        for h in reversed(range(H)):
            order = np.argsort(-np.floor(weights @ value * FINE + 0.5), kind="stable")
            q = np.zeros((rewards, X, A))
            cap = self.numbers.truncation * (H - h)
            for x, a in np.ndindex(X, A):
                low, up = box.lower[h, x, a], box.upper[h, x, a]
                row = poured(low, up - low, max(1.0 - low.sum(), 0.0), order)
                q[:, x, a] = np.minimum(reward[:, h, x, a] + value @ row, cap)
            total = self.task.closed[h] + np.tensordot(weights, q, axes=1)
            best = np.array([first_best(each) for each in total])
            policy[h, np.arange(X), best] = 1.0
            value = q[:, np.arange(X), best]
        return policy, value[:, self.task.start]

    def _due(self, state: PlannerState, episode: Episode) -> bool:
        n, every = self.numbers, all_visits(state.counts.sum(axis=-1), state.ends)
        if state.episode == n.warm_up:
            return True
        for h, (x, a) in enumerate(zip(episode.states, episode.actions, strict=False)):
            layer = min(h, len(state.counts) - 1)
            visits, planned = every[layer, x, a], state.planned[layer, x, a]
            if asks_for_plan(visits, planned, n.replan_first, n.replan_factor, n.replan_most):
                return True
        return False


def first_best(total: Array) -> int:
    """The first action of the largest value; one that is better by rounding alone is not."""
    best = 0
    for a in range(1, len(total)):
        if total[a] > total[best] + TIE * (1.0 + abs(total[best])):
            best = a
    return best
