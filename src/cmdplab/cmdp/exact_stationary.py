"""Exact quantities of a stationary policy: visits, returns, values. Plain NumPy and SciPy.

A policy is an array [X, A] with pi(a | x). P_pi [X, X] is its transition matrix between states. J
is the discounted or average return, by the criterion of the problem. Discounted visits sum to
1 / (1 - gamma). For averages, visits are long-run frequencies and sum to 1. Chains may be periodic
and have several recurrent classes. Nothing is checked here: `evaluate` does that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import bicgstab, splu

from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.numerics.elimination import Passage
from cmdplab.types import Array, Indices

SMALL = 400  # states up to which a table is factorised: 5 ms
DIRECT = 5_000  # states up to which a sparse factorisation is sure to be affordable
QUICK = 100  # sweeps in which a chain that mixes converges
SWEEPS = 100_000  # most sweeps of the last iteration, which converges on every chain


class Visits(NamedTuple):
    """Expected visits of the states, and a bound on the sum of their errors."""

    states: Array  # [X]
    error: float
    passing: Array | None = None  # [X], visits of transient states; averages only


def chain(problem: StationaryCMDP, policy: Array) -> sparse.csr_array:
    """Return the chain P_pi(y | x) = sum_a pi(a | x) P(y | x, a), [X, X], of a policy pi [X, A]."""
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
    """Return the expected value of the next state for each pair, [X, A], from values [X]."""
    return problem.kernel.ahead(0, value)


def visits(problem: StationaryCMDP, policy: Array, begun: Array | None = None) -> Visits:
    """Return the visits of a policy [X, A]: d = start + gamma d P_pi, or long-run frequencies.

    The frequencies are the limit of 1/T sum_t P(x_t = x). begun : [X], visits of a similar policy,
    at which an iteration may begin.
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
    if isinstance(problem.transition, Sparse):
        return np.asarray(chain(problem, policy).toarray())
    return np.asarray(np.matmul(policy[:, None, :], problem.transition)[:, 0])


def _discounted(follow: sparse.csr_array, gamma: float, start: Array, begun: Array | None) -> Array:
    """Return the solution d [X] of d = start + gamma follow d. begun : a first guess, or None."""
    X = len(start)
    # Sweeps keep the sum of d, so that only its shape has to converge.
    found = np.full(X, 1.0 / (X * (1.0 - gamma))) if begun is None else begun
    found, done = _swept(follow, gamma, start, found, QUICK)
    if done:
        return found
    matrix = sparse.eye_array(X, format="csr") - gamma * follow
    if X <= DIRECT:
        return np.asarray(splu(matrix.tocsc()).solve(start))
    for _ in range(4):  # each solves for the residual of the one before
        left = start - matrix @ found
        if np.abs(left).sum() <= 1e-14:
            return found
        more, _ = bicgstab(matrix, left, rtol=1e-10, maxiter=1_000)
        if not np.abs(left - matrix @ more).sum() < 0.5 * np.abs(left).sum():
            break
        found = found + more
    return _swept(follow, gamma, start, found, SWEEPS)[0]  # this settles on every chain


def _swept(
    follow: sparse.csr_array, gamma: float, start: Array, found: Array, most: int
) -> tuple[Array, bool]:
    """Return d after at most `most` sweeps d -> start + gamma follow d, and True if d converged."""
    for _ in range(most):
        following = start + gamma * (follow @ found)
        moved, found = np.abs(following - found).sum(), following
        if moved <= 1e-14:
            return found, True
    return found, False


def recurrent(follow: Any) -> list[Indices]:
    """Return the recurrent classes of the chain `follow` [X, X], each as an array of states."""
    x, y = follow.nonzero()
    linked = sparse.csr_array((np.ones(len(x)), (x, y)), shape=follow.shape)
    count, label = connected_components(linked, directed=True, connection="strong")
    leaving = np.unique(label[x[label[x] != label[y]]])
    order = np.argsort(label, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(label, minlength=count))[:-1])
    return [parts[each] for each in np.setdiff1d(np.arange(count), leaving)]


def _long_run(follow: sparse.csr_array, start: Array) -> Visits:
    classes = recurrent(follow)
    closed = np.concatenate(classes)
    passing = np.setdiff1d(np.arange(len(start)), closed)
    entered, passed = start.copy(), np.zeros(len(start))
    if len(passing):
        rows = follow[passing]
        passed[passing] = _passage(rows, passing).visits(start[passing])
        entered += rows.T @ passed[passing]
        entered[passing] = 0.0
        entered /= entered.sum()
    found = np.zeros(len(start))
    for each in classes:
        weight = entered[each].sum()
        if weight > 0.0:
            found[each] = weight * _invariant(follow[each][:, each])
    return Visits(found, 0.0, passed)


def _invariant(follow: sparse.csr_array) -> Array:
    size = follow.shape[0]
    if size == 1:
        return np.ones(1)
    passage = _passage(follow[1:], np.arange(1, size))
    found = np.maximum(np.append(1.0, passage.visits(_row(follow, 0)[1:])), 0.0)
    return np.asarray(found / found.sum())


class _Factorised(NamedTuple):
    """Equations like those of `Passage`, for many states, solved by a sparse factorisation."""

    factors: Any

    def solve(self, right: Array) -> Array:
        """Return the solution x of (I - P) x = right."""
        return np.asarray(self.factors.solve(right))

    def visits(self, start: Array) -> Array:
        """Return the solution x of x (I - P) = start."""
        return np.asarray(self.factors.solve(start, trans="T"))


def _passage(rows: Any, states: Indices) -> Passage | _Factorised:
    """Return the linear equations for n transient states, from their rows [n, X]."""
    outside = np.ones(rows.shape[1], dtype=np.bool_)
    outside[states] = False
    inner, out = rows[:, states], np.asarray(rows[:, outside].sum(axis=1))
    if not isinstance(rows, sparse.csr_array):
        return Passage(inner, out)
    if len(states) <= SMALL:
        return Passage(inner.toarray(), out)
    inner = inner - sparse.diags_array(inner.diagonal())
    return _Factorised(splu((sparse.diags_array(out + inner.sum(axis=1)) - inner).tocsc()))


def _row(follow: Any, state: int) -> Any:
    row = follow[[state]]
    return (row.toarray() if isinstance(row, sparse.csr_array) else row)[0]


def gains_and_biases_of(follow: Any, right: Any) -> tuple[Any, Any]:
    """Return gains g and biases h, [X, K] each, of a chain P = `follow` [X, X] for rewards [X, K].

    They solve g = P g and g + h = r + P h, where r is `right`. The chain is sparse, or a table of
    doubles or of decimals. h is zero at the first state of every recurrent class, because only
    differences of h have a meaning.
    """
    gains, biases = right * 0, right * 0
    classes = recurrent(follow)
    for each in classes:
        first, others = each[0], each[1:]
        gains[each] = right[first]
        if len(others):
            passage = _passage(follow[others], others)
            row = _row(follow, first)[others]
            between = passage.solve(np.column_stack([right[others], right[others, :1] * 0 + 1]))
            cycle = row @ between
            gains[each] = (right[first] + cycle[:-1]) / (1 + cycle[-1])
            biases[others] = passage.solve(right[others] - gains[others])
    passing = np.setdiff1d(np.arange(len(right)), np.concatenate(classes))
    if len(passing):
        rows = follow[passing]
        passage = _passage(rows, passing)
        gains[passing] = passage.solve(rows @ gains)
        biases[passing] = passage.solve(right[passing] - gains[passing] + rows @ biases)
    return gains, biases


def occupancy(problem: StationaryCMDP, policy: Array) -> Array:
    """Return the expected visits of each pair, [X, A], under a policy [X, A]."""
    return visits(problem, policy).states[:, None] * policy


def earned(problem: StationaryCMDP, pairs: Array) -> Array:
    """Return J of every reward, [1 + N], for an occupancy `pairs` w [X, A]: sum_{x,a} w r^n.

    Rounding never moves an average outside the range of the rewards that are earned.
    """
    found = np.asarray(np.einsum("nxa,xa->n", problem.reward, pairs))
    if isinstance(problem.criterion, Discounted):
        return found
    used = problem.reward[:, pairs > 0.0]
    return np.asarray(np.clip(found, used.min(axis=1), used.max(axis=1)))


def returns(problem: StationaryCMDP, policy: Array) -> Array:
    """Return the return J of a policy [X, A] for every reward, discounted or average: [1 + N]."""
    return earned(problem, occupancy(problem, policy))


def action_values(problem: StationaryCMDP, policy: Array, reward: Array) -> Array:
    """Return the discounted action values Q^pi [X, A] of a policy for a reward, both [X, A]."""
    if not isinstance(problem.criterion, Discounted):
        raise TypeError("action values are those of discounted rewards")
    gamma = problem.criterion.discount
    matrix = sparse.eye_array(problem.states) - gamma * chain(problem, policy)
    right = np.sum(policy * reward, axis=1)
    if problem.states <= SMALL:
        value = np.linalg.solve(matrix.toarray(), right)
    else:
        value = splu(sparse.csc_array(matrix)).solve(right)
    return reward + gamma * ahead(problem, value)


def gains_and_biases(problem: StationaryCMDP, policy: Array) -> tuple[Array, Array]:
    """Return gains and biases, [X, 1 + N] each, of a policy [X, A] for every reward."""
    right = np.einsum("xa,nxa->xn", policy, problem.reward)
    return gains_and_biases_of(chain(problem, policy), right)


def relative_values(problem: StationaryCMDP, policy: Array) -> tuple[Array, Array]:
    """Return r - g + P h and the change of the gain by one action, [1 + N, X, A] each.

    g and h are gain and bias of a policy [X, A]. The first result is the advantage of one action,
    if the policy follows afterwards. It has a meaning only if the second result is zero: otherwise
    one of the actions has a larger average.
    """
    gains, biases = gains_and_biases(problem, policy)
    values = [
        problem.reward[n] - gains[:, n, None] + ahead(problem, biases[:, n])
        for n in range(len(problem.reward))
    ]
    changes = [ahead(problem, gains[:, n]) - gains[:, n, None] for n in range(len(problem.reward))]
    return np.stack(values), np.stack(changes)


def greedy(problem: StationaryCMDP, reward: Array) -> tuple[float, Array]:
    """Return max_pi J[r] of a discounted reward r [X, A], and a deterministic optimum [X, A]."""
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
