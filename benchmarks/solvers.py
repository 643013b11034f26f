"""`make bench-solvers`: certified optima against what people use now, CPU time in one process.

Every peer comes from its package (the extra `cmdplab[benchmarks]`); one that is not installed is
left out and named. Problems are drawn from a seed; building them, and the matrices of the linear
programs, is not timed: only solving is, after one solve that compiles. Every solve has a problem
or model of its own, so that nobody begins with an earlier answer. Columns: CPU milliseconds
(the fastest of a few), how many times ours, and value - ours. Everyone has one thread. Storm gives
a value and no policy; the peers give no certificate. QuantEcon's policy iteration is not asked
where it would factorise 10,000 states that are linked at random, which takes minutes.

    OPENBLAS_NUM_THREADS=1 python benchmarks/solvers.py
        [--only WORD] [--repeats 5] [--before SRC] [--large 1e5]

--before : the folder `src` of an older checkout, which solves the episodes in a process of its own.
--large : discounted problems up to so many states, ours alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy import sparse
from scipy.optimize import linprog

from cmdplab import CMDP, StationaryCMDP, solve
from cmdplab.cmdp.stationary import Average, Discounted
from cmdplab.cmdp.transitions import Sparse
from cmdplab.formats import write_drn

Solver = Callable[[], float]  # solves, and returns the value from the start
PATIENCE = 60.0  # seconds that a linear program may take
ACTIONS = 5
LONG = 1.0  # seconds of one solve above which nobody is asked again


class Work(NamedTuple):
    """One problem, and the peers that can solve it."""

    name: str
    ours: Callable[[], Solver]  # prepares, which is not timed
    peers: dict[str, Callable[[], Solver]]  # name -> prepare, which is not timed
    episodes: CMDP | None = None  # the problem, where an older version can solve it


def rows(rng: np.random.Generator, states: int, actions: int, successors: int) -> Sparse:
    """A random kernel in which every pair has so many successors."""
    successor = rng.integers(0, states, (states, actions, successors))
    successor[..., :] = np.sort(successor, axis=-1)
    while (twice := (np.diff(successor, axis=-1) == 0).any(axis=-1)).any():
        successor[twice] = np.sort(rng.integers(0, states, (int(twice.sum()), successors)))
    weight = rng.exponential(size=successor.shape)
    return Sparse(successor, weight / weight.sum(axis=-1, keepdims=True))


def dense(rng: np.random.Generator, states: int, actions: int) -> np.ndarray:
    return rng.dirichlet(np.ones(states), (states, actions))


# --- linear programs -------------------------------------------------------------------------


def matrix_of(kernel: Any, states: int, actions: int) -> sparse.csr_matrix:
    """[X A, X]: row x A + a is P(. | x, a)."""
    if isinstance(kernel, Sparse):
        at = np.repeat(np.arange(states * actions), kernel.successor.shape[-1])
        entries = (kernel.probability.ravel(), (at, kernel.successor.ravel()))
        return sparse.csr_matrix(entries, shape=(states * actions, states))
    return sparse.csr_matrix(kernel.reshape(states * actions, states))


class Program(NamedTuple):
    """max cost q  s.t.  flow q = source, utility q >= threshold, q >= 0."""

    cost: np.ndarray
    flow: sparse.csr_matrix
    source: np.ndarray
    utility: np.ndarray
    threshold: np.ndarray


def stationary_program(problem: StationaryCMDP) -> Program:
    """The occupancies of a problem without an end; averages of one recurrent class alone."""
    X, A = problem.states, problem.actions
    gamma = getattr(problem.criterion, "discount", 1.0)
    flow = sparse.kron(sparse.eye(X), np.ones((1, A)), format="csr")
    flow = flow - gamma * matrix_of(problem.transition, X, A).T
    source = np.asarray(problem.start)
    if gamma == 1.0:  # the flow is conserved, and its shares sum to one
        flow = sparse.vstack([flow, np.ones((1, X * A))])
        source = np.append(np.zeros(X), 1.0)
    flat = problem.reward.reshape(len(problem.reward), -1)
    return Program(flat[0], flow.tocsr(), source, flat[1:], problem.threshold)


def episode_program(problem: CMDP) -> Program:
    H, X, A = problem.horizon, problem.states, problem.actions
    kernel = problem.transition if isinstance(problem.transition, Sparse) else problem.table[0]
    out = sparse.kron(sparse.eye(X), np.ones((1, A)))
    into = -matrix_of(kernel, X, A).T
    flow = sparse.kron(sparse.eye(H), out) + sparse.kron(sparse.eye(H, k=-1), into)
    source = np.zeros(H * X)
    source[problem.start] = 1.0
    flat = problem.reward.reshape(len(problem.reward), -1)
    return Program(flat[0], flow.tocsr(), source, flat[1:], problem.threshold)


def highs(program: Program, method: str) -> Solver:
    def run() -> float:
        found = linprog(
            -program.cost,
            A_ub=-program.utility if len(program.utility) else None,
            b_ub=-program.threshold if len(program.utility) else None,
            A_eq=program.flow,
            b_eq=program.source,
            method=method,
            options={"time_limit": PATIENCE},
        )
        if found.status == 1:
            raise TimeoutError(f"no answer within {PATIENCE:g} s")
        return float(-found.fun)

    return run


def clarabel(program: Program) -> Solver:
    import cvxpy as cp

    q = cp.Variable(len(program.cost), nonneg=True)
    limits = [program.flow @ q == program.source, program.utility @ q >= program.threshold]
    wanted = cp.Problem(cp.Maximize(program.cost @ q), limits)
    data, _, _ = wanted.get_problem_data(cp.CLARABEL)

    def run() -> float:
        import clarabel

        cones = data["dims"]
        sizes = [clarabel.ZeroConeT(cones.zero), clarabel.NonnegativeConeT(cones.nonneg)]
        options = clarabel.DefaultSettings()
        options.verbose = False
        options.time_limit = PATIENCE
        n = len(data["c"])
        args = (sparse.csc_matrix((n, n)), data["c"], data["A"].tocsc(), data["b"], sizes, options)
        found = clarabel.DefaultSolver(*args).solve()
        if str(found.status) != "Solved":
            raise TimeoutError(f"{found.status} after {PATIENCE:g} s or less")
        return float(-found.obj_val)

    return run


# --- dynamic programs ------------------------------------------------------------------------


def quantecon_model(problem: Any) -> Any:
    from quantecon.markov import DiscreteDP

    X, A = problem.states, problem.actions
    discount = getattr(getattr(problem, "criterion", None), "discount", 1.0)
    reward = problem.reward[0] if problem.reward.ndim == 3 else problem.reward[0, 0]
    if not isinstance(problem.transition, Sparse):
        table = problem.transition if problem.transition.ndim == 3 else problem.table[0]
        return DiscreteDP(reward.copy(), table.copy(), discount)
    pairs = np.divmod(np.arange(X * A), A)
    kernel = matrix_of(problem.transition, X, A)
    return DiscreteDP(reward.ravel().copy(), kernel, discount, *pairs)


def quantecon_episode(problem: CMDP) -> Solver:
    from quantecon.markov import backward_induction

    model = quantecon_model(problem)
    return lambda: float(backward_induction(model, problem.horizon)[0][0][problem.start])


def quantecon_discounted(problem: StationaryCMDP, method: str) -> Solver:
    model = quantecon_model(problem)
    return lambda: float(problem.start @ model.solve(method=method).v)


def toolbox_matrices(problem: Any) -> tuple[Any, np.ndarray]:
    reward = problem.reward[0] if problem.reward.ndim == 3 else problem.reward[0, 0]
    table = problem.transition if problem.transition.ndim == 3 else problem.table[0]
    return np.ascontiguousarray(np.moveaxis(table, 1, 0)), reward


def toolbox_episode(problem: CMDP) -> Solver:
    from mdptoolbox import mdp

    kernel, reward = toolbox_matrices(problem)

    def run() -> float:
        model = mdp.FiniteHorizon(kernel, reward, 1.0, problem.horizon)
        model.run()
        return float(model.V[problem.start, 0])

    return run


def toolbox_discounted(problem: StationaryCMDP) -> Solver:
    from mdptoolbox import mdp

    assert isinstance(problem.criterion, Discounted)
    kernel, reward = toolbox_matrices(problem)

    def run() -> float:
        model = mdp.PolicyIteration(kernel, reward, problem.criterion.discount)
        model.run()
        return float(problem.start @ np.array(model.V))

    return run


def mdpsolver_discounted(problem: StationaryCMDP) -> Solver:
    import mdpsolver

    assert isinstance(problem.criterion, Discounted)
    table = problem.transition
    if isinstance(table, Sparse):
        kernel: dict[str, Any] = {
            "tranMatProbs": table.probability.tolist(),
            "tranMatColumns": table.successor.tolist(),
        }
    else:
        kernel = {"tranMatWithZeros": table.tolist()}
    model = mdpsolver.model()
    discount = problem.criterion.discount
    model.mdp(discount=discount, rewards=problem.reward[0].tolist(), **kernel)

    def run() -> float:
        model.solve(algorithm="mpi", tolerance=1e-9, parallel=False)
        return float(problem.start @ np.array(model.getValueVector()))

    return run


def storm(problem: CMDP) -> Solver:
    """Storm's multi-objective value for the same horizon; it gives no policy."""
    import stormpy

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.drn"
        write_drn(problem, path)
        model = stormpy.build_model_from_drn(str(path))
    H = problem.horizon
    wanted = [f'R{{"objective"}}max=? [C<={H}]']
    wanted += [
        f'R{{"utility_{n + 1}"}}>={limit:.17g} [C<={H}]'
        for n, limit in enumerate(problem.threshold)
    ]
    formula = stormpy.parse_properties(f"multi({', '.join(wanted)})")[0]
    return lambda: float(stormpy.model_checking(model, formula).get_value(problem.start))


@njit
def sweeps(successor, probability, reward, value, following, close):  # type: ignore[no-untyped-def]
    """Relative value iteration, damped: (low + high) / 2 of the gains of the last sweep."""
    low, high = 0.0, np.inf
    while high - low > close:
        low, high = np.inf, -np.inf
        for x in range(len(value)):
            best = -np.inf
            for a in range(reward.shape[1]):
                q = reward[x, a]
                for s in range(successor.shape[2]):
                    q += probability[x, a, s] * value[successor[x, a, s]]
                best = max(best, q)
            low, high = min(low, best - value[x]), max(high, best - value[x])
            following[x] = 0.1 * value[x] + 0.9 * best
        shift = following[0]
        for x in range(len(value)):
            value[x] = following[x] - shift
    return 0.5 * (low + high)


def relative_value_iteration(problem: StationaryCMDP) -> Solver:
    """A prototype of fifty lines: no checks, no policy, and rounding is not bounded."""
    kernel, X = problem.transition, problem.states
    if isinstance(kernel, Sparse):
        lists = kernel.successor, kernel.probability
    else:
        everywhere = np.broadcast_to(np.arange(X), kernel.shape)
        lists = np.ascontiguousarray(everywhere), np.asarray(kernel)
    return lambda: float(sweeps(*lists, problem.reward[0], np.zeros(X), np.empty(X), 1e-12))


# --- the table -------------------------------------------------------------------------------


def episode_works(rng: np.random.Generator) -> Iterator[Work]:
    for states, successors, constraints in (
        (100, 0, 0),
        (1_000, 5, 0),
        (10_000, 5, 0),
        (100, 0, 2),
        (400, 4, 2),
        (1_000, 5, 2),
    ):
        yield episode_work(rng, states, successors, constraints)


def episode_work(rng: np.random.Generator, states: int, successors: int, constraints: int) -> Work:
    actions, H = 5, 20
    kernel = rows(rng, states, actions, successors) if successors else dense(rng, states, actions)
    rewards = rng.random((1 + constraints, states, actions))

    def problem_with(tables: np.ndarray, limits: np.ndarray) -> CMDP:
        return CMDP(kernel, tables, limits, horizon=H, name="bench")  # type: ignore[arg-type]

    problem = problem_with(rewards, thresholds(problem_with, rewards))
    peers: dict[str, Callable[[], Solver]] = {}
    if constraints == 0:
        peers["QuantEcon"] = lambda: quantecon_episode(problem)
        if not successors:
            peers["pymdptoolbox"] = lambda: toolbox_episode(problem)
    else:
        peers["HiGHS simplex"] = lambda: highs(episode_program(problem), "highs-ds")
        peers["HiGHS interior point"] = lambda: highs(episode_program(problem), "highs-ipm")
        peers["Clarabel"] = lambda: clarabel(episode_program(problem))
        peers["Storm"] = lambda: storm(problem)
    how = f"{successors} successors" if successors else "dense"
    name = f"episodes, N={constraints} X={states:,} A={actions} H={H} {how}"
    return Work(name, lambda: ours(problem_with(rewards, problem.threshold)), peers, problem)


def discounted_works(rng: np.random.Generator) -> Iterator[Work]:
    for states, successors, constraints in (
        (100, 0, 0),
        (10_000, 5, 0),
        (100, 0, 2),
        (1_000, 5, 2),
        (10_000, 5, 2),
    ):
        kernel = kernel_of(rng, states, successors)
        yield stationary_work(rng, kernel, Discounted(0.99), constraints, successors)


def average_works(rng: np.random.Generator) -> Iterator[Work]:
    for states in (100, 1_000, 2_000, 4_000, 10_000, 100_000):
        yield stationary_work(rng, rows(rng, states, ACTIONS, 5), Average(), 0, 5)
    for states in (500, 1_000):
        yield stationary_work(rng, ring(states), Average(), 0, 3, "ring")
    for constraints in (1, 2):
        for states, successors in ((100, 0), (100, 5), (500, 5), (1_000, 5), (10_000, 5)):
            kernel = kernel_of(rng, states, successors)
            yield stationary_work(rng, kernel, Average(), constraints, successors)


def kernel_of(rng: np.random.Generator, states: int, successors: int) -> Any:
    return rows(rng, states, ACTIONS, successors) if successors else dense(rng, states, ACTIONS)


def ring(states: int) -> Sparse:
    """Stay, right or left with probability 0.8, each other move with 0.1."""
    at = np.arange(states)[:, None, None]
    successor = np.broadcast_to((at + np.array([0, 1, -1])) % states, (states, 3, 3))
    return Sparse(successor, np.broadcast_to(0.7 * np.eye(3) + 0.1, (states, 3, 3)))


def stationary_work(
    rng: np.random.Generator,
    kernel: Any,
    criterion: Discounted | Average,
    constraints: int,
    successors: int,
    shape: str = "",
) -> Work:
    table = kernel.probability if isinstance(kernel, Sparse) else kernel
    states, actions = table.shape[:2]
    rewards = rng.random((1 + constraints, states, actions))

    def problem_with(tables: np.ndarray, limits: np.ndarray) -> StationaryCMDP:
        return StationaryCMDP(kernel, tables, limits, criterion)  # type: ignore[arg-type]

    problem = problem_with(rewards, thresholds(problem_with, rewards))
    discounted = isinstance(criterion, Discounted)
    peers: dict[str, Callable[[], Solver]] = {}
    if constraints == 0 and discounted:
        if states <= 1_000:
            peers["QuantEcon policy iteration"] = lambda: quantecon_discounted(problem, "pi")
        peers["QuantEcon modified"] = lambda: quantecon_discounted(problem, "mpi")
        peers["mdpsolver"] = lambda: mdpsolver_discounted(problem)
        if not successors:
            peers["pymdptoolbox"] = lambda: toolbox_discounted(problem)
    elif constraints == 0:
        peers["value iteration"] = lambda: relative_value_iteration(problem)
    if (constraints and (discounted or states <= 1_000)) or states <= 100:
        peers["HiGHS simplex"] = lambda: highs(stationary_program(problem), "highs-ds")
        peers["HiGHS interior point"] = lambda: highs(stationary_program(problem), "highs-ipm")
        peers["Clarabel"] = lambda: clarabel(stationary_program(problem))
    kind = f"discount {criterion.discount}" if isinstance(criterion, Discounted) else "average"
    how = shape or (f"{successors} successors" if successors else "dense")
    name = f"{kind}, N={constraints} X={states:,} A={actions} {how}"
    return Work(name, lambda: ours(problem_with(rewards, problem.threshold)), peers)


def thresholds(
    problem_with: Callable[[np.ndarray, np.ndarray], Any], rewards: np.ndarray
) -> np.ndarray:
    """[N]: a third of the way from what the best policy has anyway to what can be had at all."""
    none = np.zeros(0)
    limits = []
    best = solve(problem_with(rewards[:1], none))
    for utility in rewards[1:]:
        most = solve(problem_with(utility[None], none)).value
        had = float(np.sum(np.asarray(best.occupancy) * utility))
        limits.append(had + (most - had) / (1.0 + len(rewards)))
    return np.array(limits)


def ours(problem: Any) -> Solver:
    return lambda: float(solve(problem).value or np.nan)


def fastest(prepare: Callable[[], Solver], repeats: int) -> tuple[float, float]:
    """(CPU seconds of the fastest of some solves, each prepared anew, the value)."""
    best, value = np.inf, np.nan
    for _ in range(repeats):
        run = prepare()
        began = time.process_time()
        value = run()
        best = min(best, time.process_time() - began)
        if best > LONG:
            break
    return best, value


PACKAGES = {
    "QuantEcon": "quantecon",
    "pymdptoolbox": "mdptoolbox",
    "mdpsolver": "mdpsolver",
    "Clarabel": "clarabel",
    "Storm": "stormpy",
}


def missing(peer: str) -> bool:
    package = PACKAGES.get(peer.split(" ")[0])
    return package is not None and importlib.util.find_spec(package) is None


OLDER = """
import sys, time
import numpy as np
from cmdplab import CMDP, solve
given = np.load(sys.argv[1])
problem = CMDP(given["kernel"], given["reward"], given["threshold"], horizon=int(given["horizon"]))
solve(problem)
best = 1e9
for _ in range(int(sys.argv[2])):
    began = time.process_time()
    value = solve(problem).value
    best = min(best, time.process_time() - began)
print(best, value)
"""


def older(problem: CMDP, source: str, repeats: int) -> tuple[float, float]:
    """(CPU seconds, value) of the version at `source`, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        kernel = problem.transition
        table = kernel.dense() if isinstance(kernel, Sparse) else problem.table[0]
        given = {"reward": problem.reward, "threshold": problem.threshold}
        np.savez(path, kernel=table, horizon=problem.horizon, **given)
        command = [sys.executable, "-c", OLDER, str(path), str(repeats)]
        environment = {**os.environ, "PYTHONPATH": source}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    took, value = done.stdout.split()[-2:]
    return float(took), float(value)


def show_large(states: int) -> None:
    """One discounted problem with two constraints, ours alone."""
    rng = np.random.default_rng(3)
    kernel, rewards = rows(rng, states, 5, 5), rng.random((3, states, 5))

    def problem_with(tables: np.ndarray, limits: np.ndarray) -> StationaryCMDP:
        return StationaryCMDP(kernel, tables, limits, Discounted(0.99))

    problem = problem_with(rewards, thresholds(problem_with, rewards))
    began, wall = time.process_time(), time.perf_counter()
    found = solve(problem)
    took, wall = time.process_time() - began, time.perf_counter() - wall
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"  {states:9,} states {took:8.2f} s of CPU, {wall:8.2f} s, {memory:5.2f} GiB, "
        f"certified to {found.duality_gap:.1e}",
        flush=True,
    )


def show(work: Work, repeats: int, before: str = "") -> None:
    work.ours()()
    took, value = fastest(work.ours, repeats)
    print(f"\n{work.name}\n  {'cmdplab':28} {1e3 * took:12.2f} ms   value {value:.9g}", flush=True)
    if before and work.episodes is not None and work.episodes.states <= 1_000:
        theirs, found = older(work.episodes, before, repeats)
        line = f"{1e3 * theirs:12.2f} ms {theirs / took:9.2f} x   {found - value:+.1e}"
        print(f"  {'cmdplab before':28} {line}", flush=True)
    for name, prepare in work.peers.items():
        if missing(name):
            print(f"  {name:28} not installed")
            continue
        try:
            theirs, found = fastest(prepare, repeats + 1)
        except Exception as error:  # a peer that fails is a line of the table, not the end of it
            print(f"  {name:28} failed: {type(error).__name__}: {str(error)[:60]}", flush=True)
            continue
        ratio = theirs / took
        print(
            f"  {name:28} {1e3 * theirs:12.2f} ms {ratio:9.2f} x   {found - value:+.1e}", flush=True
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--only", default="", help="only works whose name has this word")
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--before", default="", help="the folder src of an older checkout")
    options.add_argument("--large", type=float, default=0.0, help="states of the largest problem")
    given = options.parse_args()
    if given.large:
        print("\ndiscount 0.99, N=2 A=5 5 successors, cmdplab alone")
        for states in (1_000, 10_000, 100_000, 1_000_000):
            if states <= given.large:
                show_large(states)
        return
    makers = [
        ("episodes", episode_works, 0),
        ("discount", discounted_works, 1),
        ("average", average_works, 2),
    ]
    for kind, works, seed in makers:
        if not (kind.startswith(given.only[:7]) or given.only.startswith(("N=", "X="))):
            continue
        for work in works(np.random.default_rng(seed)):
            if given.only in work.name:
                show(work, given.repeats, given.before)


if __name__ == "__main__":
    main()
