"""Triple-Q in plain Python: the algorithm as one reads it, the oracle of the compiled engine."""

from __future__ import annotations

import numpy as np

from cmdplab.algorithms.families import triple_q as eq
from cmdplab.algorithms.families.triple_q import TripleQ, TripleQNumbers, TripleQState
from cmdplab.algorithms.learner import Episode
from cmdplab.algorithms.task import Task
from cmdplab.types import Array, Indices
from oracles.learner import PlainLearner


def means(task: Task, states: Indices, actions: Indices) -> Array:
    """Return the known rewards of an episode, [1 + N, H]."""
    return task.reward[:, np.arange(len(actions)), states[:-1], actions]


class PlainTripleQ(PlainLearner[TripleQ, TripleQNumbers]):
    """The learner of one row and one task."""

    def init(self) -> TripleQState:
        """Before the first episode."""
        return TripleQState.initial(self.row, self.task)

    def policy(self, state: TripleQState) -> Array:
        """[H, X, A], what is played next: greedy, but for a share of random actions."""
        policy = np.empty_like(state.objective)
        for h, x in np.ndindex(*policy.shape[:2]):
            policy[h, x] = self.choice(state, h, x)
        return policy

    def choice(self, state: TripleQState, h: int, x: int) -> list[float]:
        """pi_h(. | x) of the next episode; the first of equally good actions is the greedy one."""
        actions = state.objective.shape[2]
        values = [self._pseudo_value(state, h, x, a) for a in range(actions)]
        best, share = values.index(max(values)), self.share(state.episode + 1)
        closed = self.task.closed[h, x]
        opened = int(np.count_nonzero(closed == 0.0))
        return [
            eq.action_probability(float(a == best), share, opened) if closed[a] == 0.0 else 0.0
            for a in range(actions)
        ]

    def share(self, episode: int) -> float:
        """How much of the play of an episode is random."""
        n = self.numbers
        exploration = (n.explore_first, n.explore_decay, n.explore_every, n.explore_always)
        return eq.exploration(float(episode), *exploration)

    def observe(self, state: TripleQState, episode: Episode) -> TripleQState:
        """Learn from one episode; at the end of a frame, raise or reset the tables."""
        state = self._learn(state, episode)
        if state.episode % int(self.numbers.frame) == 0:
            return self._next_frame(state)
        return state

    def _pseudo_value(self, state: TripleQState, h: int, x: int, a: int) -> float:
        """Q + sum_j (Z_j / eta) C^j."""
        total = self.task.closed[h, x, a] + state.objective[h, x, a]
        for multiplier, utility in zip(state.multiplier, state.utility, strict=True):
            total += multiplier * utility[h, x, a]
        return float(total)

    def _learn(self, state: TripleQState, episode: Episode) -> TripleQState:
        n, states, actions = self.numbers, episode.states, episode.actions
        rewards = episode.rewards if self.task.observed else means(self.task, states, actions)
        assert rewards is not None
        tables = [state.objective.copy(), *state.utility.copy()]
        widths = [n.objective_width] + [n.utility_width] * len(state.utility)
        visits, tally = state.visits.copy(), state.tally.copy()
        for h, a in enumerate(actions):
            x, last = states[h], h + 1 == len(actions)
            visits[h, x, a] += 1.0
            t = visits[h, x, a]
            alpha = eq.rate(t, n.chi)
            for i, table in enumerate(tables):
                now = table[h, x, a]
                ahead = 0.0 if last else table[h + 1, states[h + 1], actions[h + 1]]
                bonus = eq.width(widths[i], t, n.width_shift)
                after = eq.learned(now, alpha, rewards[i, h], ahead, bonus)
                table[h, x, a] = after
                if h == 0 and i > 0:
                    tally[i - 1] += eq.blend(now, after, n.tally_after)
        return state._replace(
            objective=tables[0],
            utility=np.reshape(tables[1:], state.utility.shape),
            visits=visits,
            tally=tally,
            episode=state.episode + 1,
        )

    def _next_frame(self, state: TripleQState) -> TripleQState:
        n = self.numbers
        objective, utility = state.objective + n.raised, state.utility.copy()
        for at in np.ndindex(*objective.shape):
            most = max((c[at] for c in utility), default=-np.inf)
            q = float(objective[at])
            reset = eq.reset_share(q, most, n.objective_limit, n.utility_limit)
            objective[at] = eq.blend(q, n.objective_start, reset)
            for c in utility:
                c[at] = eq.blend(c[at], n.utility_start, n.utility_reset * reset)
        queue = np.array(
            [
                eq.queue_step(z, b, n.margin, tally, n.frame)
                for z, b, tally in zip(state.queue, self.task.threshold, state.tally, strict=True)
            ]
        )
        return TripleQState(
            objective=objective,
            utility=utility,
            visits=np.zeros_like(state.visits),
            queue=queue,
            tally=np.zeros_like(state.tally),
            multiplier=queue / n.eta,
            episode=state.episode,
        )
