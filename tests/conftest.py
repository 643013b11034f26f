"""Shared problems and settings of the tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings, strategies as st

from cmdplab import cli
from cmdplab.cmdp.exact import greedy
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.random_cmdp import SHAPES, random_problem
from cmdplab.experiments.durable import do_one
from cmdplab.experiments.work import Entries
from cmdplab.solvers import solve

__all__ = ["SHAPES", "random_problem"]

SEARCH = int(os.environ.get("SEARCH", "0"))  # `make search`: times the usual number of examples


def examples(count: int) -> settings:
    """Return the settings of a Hypothesis test: the same examples each time, except in a search."""
    return settings(
        deadline=None,
        max_examples=count * max(SEARCH, 1),
        derandomize=not SEARCH,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )


settings.register_profile("cmdplab", examples(30))
settings.load_profile("cmdplab")

ROOT = Path(__file__).parent.parent
TRACE = Path(__file__).parent / "data" / "released_notebook_small.npz"
PLANNED_TRACE = Path(__file__).parent / "data" / "released_optcmdp_media.npz"
SEARCH_TRACES = {
    name: Path(__file__).parent / "data" / f"released_opse_{name}.npz"
    for name in ("streaming", "random")
}


@st.composite
def problems(draw: st.DrawFn, constraints: st.SearchStrategy[int] | None = None) -> CMDP:
    """Random small feasible problems, dense and nearly deterministic ones."""
    X, A, H = draw(st.integers(1, 7)), draw(st.integers(1, 4)), draw(st.integers(1, 5))
    N = draw(constraints if constraints is not None else st.integers(0, 3))
    seed = draw(st.integers(0, 10**6))
    return random_problem(X, A, H, N, seed, draw(st.sampled_from([0.05, 0.3, 1.0])))


def random_policy(problem: CMDP, seed: int, concentration: float = 0.5) -> np.ndarray:
    rng = np.random.default_rng(seed)
    alpha = np.full(problem.actions, concentration)
    return rng.dirichlet(alpha, (problem.horizon, problem.states))


@pytest.fixture
def two_state() -> CMDP:
    """Stay and earn 1, or leave and earn utility 1; both actions can be mixed over the steps."""
    H = 10
    kernel = np.zeros((2, 2, 2))
    kernel[0, 0, 0] = kernel[0, 1, 1] = 1.0  # state 0: stay or leave
    kernel[1, :, 1] = 1.0  # state 1 absorbs
    reward = np.zeros((2, 2, 2))
    reward[0, 0, 0] = 1.0
    reward[1, 1, :] = 1.0
    return CMDP(kernel, reward, np.array([5.0]), 0, horizon=H, name="two states")


def dense_signatures(compiled) -> list:
    """The signatures of a compiled function that are about tables: lists have one of their own."""
    return [each for each in compiled.dispatcher.signatures if "Listed" not in str(each)]


def largest_utility(problem: CMDP) -> float:
    return greedy(problem, problem.reward[1])[0]


@pytest.fixture
def call(monkeypatch, capsys):
    """Run `cmdplab ...` in this process: (exit code, standard output, standard error)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cmdplab", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capsys.readouterr()
        return int(exit_.value.code or 0), out, err

    return run


@contextmanager
def in_one_process() -> Iterator[None]:
    """Sweeps run here, one run after the other: the same numbers, and no worker that has to start.

    For what says nothing about workers; `experiments/test_sweeping.py` compares the two.
    """

    def run_one_by_one(works, workers, on_event, interrupt, every):
        entries = Entries()
        for work in works:
            ended, _ = do_one(work, on_progress=on_event, every=every, entries=entries)
            on_event(ended)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cmdplab.experiments.sweep.run_locally", run_one_by_one)
        yield


@pytest.fixture(scope="module")
def one_process():
    """The same for a module, with the fixtures that it has."""
    with in_one_process():
        yield


@pytest.fixture
def undrawn(monkeypatch):
    """Studies draw no figure, which takes a second, for tests that look at none."""
    monkeypatch.setattr("cmdplab.studies.conclusions._draw", lambda *_: None)


@cache
def binding(constraints: int, seed: int = 0) -> CMDP:
    """A random problem all of whose constraints have multipliers above zero."""
    for each in range(seed, seed + 1000):
        free = random_problem(4, 3, 3, constraints, each, 0.3)
        solo = [greedy(free, r)[0] for r in free.reward[1:]]
        tight = CMDP(free.transition, free.reward, 0.55 * np.array(solo), free.start)
        found = solve(tight)
        if found.multiplier is not None and np.all(np.array(found.multiplier) > 0.1):
            return tight
    raise AssertionError("no such problem")
