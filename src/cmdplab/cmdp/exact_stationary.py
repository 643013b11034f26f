"""Exact quantities of a stationary policy: visits, returns, values. Plain NumPy and SciPy.

A policy is an array [X, A] with pi(a | x). Discounted visits sum to 1 / (1 - gamma); those of the
average are the share of time spent, and sum to 1. Chains may be periodic and have several classes.
Nothing is checked here: `evaluate` does that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import bicgstab, splu

from cmdplab.cmdp.exact import even
from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.types import Array, Indices

SMALL = 400  # states up to which a table is factorised: 5 ms
DIRECT = 5_000  # states up to which a sparse factorisation is sure to be affordable
QUICK = 100  # sweeps in which a chain that mixes converges
SWEEPS = 100_000  # of the iteration that always ends, where the quick one does not


class Visits(NamedTuple):
    """Expected visits of the states, and a bound on the sum of their errors."""

    states: Array  # [X]
    error: float
    passing: Array | None = None  # [X]: of states that are left for ever; of averages alone


def chain(problem: StationaryCMDP, policy: Array) -> sparse.csr_array:
    """[X, X]: P_pi(y | x) = sum_a pi(a | x) P(y | x, a)."""
    kernel, X = problem.transition, problem.states
    if not isinstance(kernel, Sparse):
        return sparse.csr_array(np.einsum("xa,xay->xy", policy, kernel))
    x, a = np.nonzero(policy)
    flow = policy[x, a, None] * kernel.probability[x, a]
    entries = (flow.ravel(), (np.repeat(x, flow.shape[1]), kernel.successor[x, a].ravel()))
    found = sparse.csr_array(entries, shape=(X, X))
    found.eliminate_zeros()
    return found


def ahead(problem: StationaryCMDP, value: Array) -> Array:
    """[X, A]: the expected value of the next state."""
    return problem.kernel.ahead(0, value)


def visits(problem: StationaryCMDP, policy: Array, begun: Array | None = None) -> Visits:
    """d = start + gamma d P_pi where rewards are discounted, else the limit of 1/T sum_t P(x_t).

    begun : [X], visits of a similar policy, from which an iteration may begin.
    """
    if not isinstance(problem.criterion, Discounted):
        return _long_run(chain(problem, policy), np.asarray(problem.start))
    gamma, start = problem.criterion.discount, np.asarray(problem.start)
    if problem.states <= SMALL:
        table = _small_chain(problem, policy).T
        found = np.asarray(np.linalg.solve(np.eye(len(start)) - gamma * table, start))
        residual = start + gamma * (table @ found) - found
    else:
        follow = chain(problem, policy).T.tocsr()
        found = _discounted(follow, gamma, start, begun)
        residual = start + gamma * (follow @ found) - found
    unsure = np.abs(residual).sum() + np.finfo(np.float64).eps * np.abs(found).sum()
    return Visits(found, float(unsure) / (1.0 - gamma))


def _small_chain(problem: StationaryCMDP, policy: Array) -> Array:
    """[X, X], written out."""
    if isinstance(problem.transition, Sparse):
        return np.asarray(chain(problem, policy).toarray())
    return np.asarray(np.matmul(policy[:, None, :], problem.transition)[:, 0])


def _discounted(follow: sparse.csr_array, gamma: float, start: Array, begun: Array | None) -> Array:
    """The solution of d = start + gamma follow d."""
    X = len(start)
    # Sweeps keep the sum of d, so that only where time is spent has to converge, not how much.
    found = np.full(X, 1.0 / (X * (1.0 - gamma))) if begun is None else begun
    found, done = _swept(follow, gamma, start, found, QUICK)
    if done:
        return found
    matrix = sparse.eye_array(X, format="csr") - gamma * follow
    if X <= DIRECT:
        return np.asarray(splu(matrix.tocsc()).solve(start))
    for _ in range(4):  # each from what is left of the last
        left = start - matrix @ found
        if np.abs(left).sum() <= 1e-14:
            return found
        more, _ = bicgstab(matrix, left, rtol=1e-10, maxiter=1_000)
        if not np.abs(left - matrix @ more).sum() < 0.5 * np.abs(left).sum():
            break
        found = found + more
    return _swept(follow, gamma, start, found, SWEEPS)[0]  # it ends whatever the chain


def _swept(
    follow: sparse.csr_array, gamma: float, start: Array, found: Array, most: int
) -> tuple[Array, bool]:
    """Sweeps d -> start + gamma follow d, at most so many; whether they changed nothing at last."""
    for _ in range(most):
        following = start + gamma * (follow @ found)
        moved, found = np.abs(following - found).sum(), following
        if moved <= 1e-14:
            return found, True
    return found, False


def recurrent(follow: sparse.csr_array) -> list[Indices]:
    """The closed classes of a chain [X, X], each an array of states."""
    count, label = connected_components(follow, directed=True, connection="strong")
    x, y = follow.nonzero()
    leaving = np.unique(label[x[label[x] != label[y]]])
    order = np.argsort(label, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])
    return [parts[each] for each in np.setdiff1d(np.arange(count), leaving)]


def _long_run(follow: sparse.csr_array, start: Array) -> Visits:
    """start P*: where time is spent in the long run, and how often other states are passed."""
    classes = recurrent(follow)
    closed = np.concatenate(classes)
    passing = np.setdiff1d(np.arange(len(start)), closed)
    entered, passed = start.copy(), np.zeros(len(start))
    if len(passing):
        within = follow[passing][:, passing]
        passed[passing] = _solve(sparse.eye_array(len(passing)) - within.T, start[passing])
        entered = start + follow[passing].T @ passed[passing]
        entered[passing] = 0.0
    found = np.zeros(len(start))
    for each in classes:
        weight = entered[each].sum()
        if weight > 0.0:
            found[each] = weight * _invariant(follow[each][:, each])
    return Visits(found, 0.0, passed)


def _invariant(follow: sparse.csr_array) -> Array:
    """The distribution of an irreducible chain that it keeps."""
    size = follow.shape[0]
    if size == 1:
        return np.ones(1)
    rows = (sparse.eye_array(size) - follow.T).tolil().tocsr()[1:]
    others = _solve(rows[:, 1:], np.asarray(-rows[:, [0]].toarray()[:, 0]))  # with d(0) = 1
    found = np.maximum(np.concatenate([[1.0], others]), 0.0)
    return np.asarray(found / found.sum())


def _solve(matrix: sparse.csr_array, right: Array) -> Array:
    if matrix.shape[0] <= SMALL:
        return np.asarray(np.linalg.solve(matrix.toarray(), right))
    return np.asarray(splu(sparse.csc_array(matrix)).solve(right))


def occupancy(problem: StationaryCMDP, policy: Array) -> Array:
    """[X, A]: how often each pair is visited."""
    return visits(problem, policy).states[:, None] * policy


def earned(problem: StationaryCMDP, pairs: Array) -> Array:
    """[1 + N]: sum_{x,a} w(x, a) r^n(x, a) of an occupancy w [X, A]."""
    return np.asarray(np.einsum("nxa,xa->n", problem.reward, pairs))


def returns(problem: StationaryCMDP, policy: Array) -> Array:
    """[1 + N]: J of every reward."""
    return earned(problem, occupancy(problem, policy))


def action_values(problem: StationaryCMDP, policy: Array, reward: Array) -> Array:
    """[X, A]: Q^pi of a reward [X, A], discounted."""
    if not isinstance(problem.criterion, Discounted):
        raise TypeError("action values are those of discounted rewards")
    gamma = problem.criterion.discount
    matrix = sparse.eye_array(problem.states) - gamma * chain(problem, policy)
    value = _solve(matrix, np.sum(policy * reward, axis=1))
    return reward + gamma * ahead(problem, value)


def gains_and_biases(problem: StationaryCMDP, policy: Array) -> tuple[Array, Array]:
    """([X, 1 + N], [X, 1 + N]) of a policy [X, A], averaged: g = P g and g + h = r + P h.

    h is zero at the first state of every recurrent class: only differences of it mean anything.
    """
    follow = chain(problem, policy)
    right = np.einsum("xa,nxa->xn", policy, problem.reward)
    gains, biases = np.zeros_like(right), np.zeros_like(right)
    classes = recurrent(follow)
    for each in classes:  # the gain takes the place of the first state's bias
        matrix = (sparse.eye_array(len(each)) - follow[each][:, each]).tolil()
        matrix[:, [0]] = np.ones((len(each), 1))
        found = _solve(matrix.tocsr(), right[each])
        gains[each], biases[each[1:]] = found[0], found[1:]
    passing = np.setdiff1d(np.arange(problem.states), np.concatenate(classes))
    if len(passing):
        rows = follow[passing]
        matrix = sparse.eye_array(len(passing)) - rows[:, passing]
        gains[passing] = _solve(matrix, rows @ gains)
        biases[passing] = _solve(matrix, right[passing] - gains[passing] + rows @ biases)
    return gains, biases


def relative_values(problem: StationaryCMDP, policy: Array) -> tuple[Array, Array]:
    """([1 + N, X, A], [1 + N, X, A]): r - g + P h, and by how much an action changes the gain.

    The first is what an action earns beside the average if the policy goes on as it is. It means
    something where the second is zero: elsewhere one action is better for ever.
    """
    gains, biases = gains_and_biases(problem, policy)
    values = [
        problem.reward[n] - gains[:, n, None] + ahead(problem, biases[:, n])
        for n in range(len(problem.reward))
    ]
    changes = [ahead(problem, gains[:, n]) - gains[:, n, None] for n in range(len(problem.reward))]
    return np.stack(values), np.stack(changes)


def greedy(problem: StationaryCMDP, reward: Array) -> tuple[float, Array]:
    """max over policies of J[r], discounted, and a deterministic policy: policy iteration."""
    states = np.arange(problem.states)
    policy = np.zeros(reward.shape)
    policy[states, np.argmax(problem.opened, axis=1)] = 1.0
    while True:
        q = np.where(problem.opened, action_values(problem, policy, reward), -np.inf)
        value, best = np.sum(np.where(policy > 0.0, policy * q, 0.0), axis=1), q.argmax(axis=1)
        better = q[states, best] > value + 1e-12 * (1.0 + np.abs(value))
        if not better.any():
            return float(problem.start @ value), policy
        policy[better] = 0.0
        policy[states[better], best[better]] = 1.0


def bound(problem: StationaryCMDP, reward: Array, value: Array) -> float:
    """An upper bound on J[r], discounted, of every policy: start v + max (T v - v) / (1 - gamma).

    For any v at all: T v <= v + e makes v + e / (1 - gamma) an upper solution.
    """
    assert isinstance(problem.criterion, Discounted)
    gamma = problem.criterion.discount
    q = np.where(problem.opened, reward + gamma * ahead(problem, value), -np.inf)
    excess = float(np.max(q.max(axis=1) - value))
    return float(problem.start @ value) + excess / (1.0 - gamma)


def reachable(problem: StationaryCMDP) -> Indices:
    """The states that some policy reaches from the start."""
    follow = chain(problem, even(problem.opened))
    found = np.asarray(problem.start) > 0.0
    while True:
        more = found | (follow.T @ found.astype(float) > 0.0)
        if (more == found).all():
            return np.flatnonzero(found)
        found = more


def gain_bound(problem: StationaryCMDP, reward: Array, gain: Array, bias: Array) -> float:
    """An upper bound on the average of r under every policy, from any gains that only fall.

    g >= P g and r + P h <= g + h + e for all pairs make start g + e one. What h lacks where an
    action gives up gain is made up for by adding a multiple of g to it. Rounding in g >= P g is
    taken for equality.
    """
    at = reachable(problem)
    drop = np.where(problem.opened, gain[:, None] - ahead(problem, gain), np.inf)[at]
    excess = reward + ahead(problem, bias) - (bias + gain)[:, None]
    excess = np.where(problem.opened, excess, -np.inf)[at]
    size = 1.0 + np.abs(gain[at]).max()
    if drop.min() < -1e-10 * size:
        return float(gain[at].max() + max(np.max(excess + gain[at][:, None] - gain[at].max()), 0.0))
    losing = (drop > 1e-9 * size) & np.isfinite(drop)  # closed pairs lose nothing
    lost = np.where(losing, drop, 0.0)
    multiple = float(np.max(excess / np.where(losing, drop, 1.0), where=losing, initial=0.0))
    left = np.where(losing, excess - multiple * lost, excess)
    return float(problem.start @ gain) + max(float(left.max()), 0.0)
