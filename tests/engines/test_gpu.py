"""The GPU engine without a GPU: its arithmetic, its refusals, and its kernels in the simulator."""

from __future__ import annotations

import dis
import os
import subprocess
import sys

import numpy as np
import pytest
from conftest import ROOT, random_problem
from hypothesis import given, strategies as st

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.families import triple_q
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.families.triple_q import TripleQ, find_best
from cmdplab.algorithms.task import Task
from cmdplab.engines import choose
from cmdplab.engines.gpu import batch, device, layout, limits
from cmdplab.engines.gpu.families import CARD_FAMILIES
from cmdplab.engines.gpu.formulas import unfused
from cmdplab.errors import EngineError, InputError
from cmdplab.numerics.noise import blocks_per_episode, draw_block, round_keys, uniforms

UOPT = algorithm("UOpt-RPGPD", "released")


@given(st.integers(0, 2**63 - 1), st.integers(1, 10**12), st.integers(1, 9))
def test_the_kernels_uniforms_are_numpys(seed, episode, horizon):
    keys, blocks = round_keys(seed), blocks_per_episode(horizon)
    drawn = np.zeros(4 * blocks)
    for block in range(blocks):
        draw_block(keys, (episode - 1) * blocks + block, drawn, 4 * block)
    expected = uniforms(seed, episode, 1, horizon)[0]
    np.testing.assert_array_equal(drawn[: 2 * horizon].reshape(horizon, 2), expected)


@given(
    st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 70), st.integers(1, 70)),
    st.sampled_from([None, 1, 2, 8, 32]),
)
def test_every_pair_has_a_place_of_its_own_and_states_stay_inside_a_warp(shape, lanes):
    form = layout.form_of(shape, lanes)
    places = layout.places(form)
    assert len(np.unique(places)) == places.size
    assert places.max() < form.row
    assert form.threads % 32 == 0
    threads = places % form.span
    assert (threads // 32 == threads[:, :1] // 32).all()
    assert (threads // form.lanes == np.arange(form.states)[:, None]).all()


@given(st.integers(1, 9), st.integers(1, 50), st.integers(0, 10**6))
def test_arrays_come_back_from_the_card_as_they_went(states, actions, seed):
    values = np.random.default_rng(seed).random((2, 3, states, actions))
    form = layout.form_of(values.shape)
    np.testing.assert_array_equal(layout.from_card(layout.to_card(values, form), form), values)


def test_memory_grows_by_the_same_for_every_run():
    family, form = CARD_FAMILIES[PrimalDual], layout.form_of((2, 10, 30, 3))

    def foreseen(precision, runs):
        return limits.foreseen_memory(family, form, precision, runs)

    small, large = foreseen("float32", 4096), foreseen("float32", 8192)
    assert form.row == 96
    assert large - small >= 4096 * 4 * 10 * 30 * 96  # its counts alone
    assert foreseen("float64", 4096) > small


def test_what_is_foreseen_for_triple_q_holds_its_tables_and_its_kernel():
    family, shape = CARD_FAMILIES[TripleQ], (3, 10, 30, 3)
    form = family.form(shape)
    assert form.threads == 64  # 30 next states and 3 rewards, in whole warps
    assert family.run_bytes(form, 8) >= 8 * 4 * 10 * 30 * 3  # two tables of C, Q and visits
    assert family.world_bytes(form, 8) >= 2 * 8 * 10 * 30 * 3 * 30  # P and its cumulative sums


def test_no_product_is_left_that_a_gpu_could_fuse_with_a_sum():
    for formula in (triple_q.learned, triple_q.blend, find_best.py_func):
        names = [each.argrepr for each in dis.get_instructions(unfused(formula))]
        assert "*" in [each.argrepr for each in dis.get_instructions(formula)]
        assert "*" not in names
        assert any("product" in each for each in names)


def test_batches_cover_all_runs_and_fit(monkeypatch):
    family, task = CARD_FAMILIES[PrimalDual], Task.of(random_problem(30, 3, 10, 1), 0.1)
    form = family.form(task.reward.shape)
    given = (UOPT, task, "float64", 1000, 1)

    def foreseen(runs):
        return limits.foreseen_memory(family, form, "float64", runs)

    room = 2 * foreseen(100)
    monkeypatch.setattr(limits, "free_memory", lambda: room)
    parts = limits.batches(*given)
    assert [each for part in parts for each in range(1000)[part]] == list(range(1000))
    assert len(parts) > 1
    assert max(foreseen(len(range(1000)[part])) for part in parts) <= 0.9 * room
    monkeypatch.setattr(limits, "free_memory", lambda: 1000)
    with pytest.raises(EngineError, match="too large for this card"):
        limits.batches(*given)


def test_what_the_engine_does_not_have_is_refused_in_one_sentence():
    problem = random_problem(3, 2, 2, 1)
    known, observed = Task.of(problem, 0.1), Task.of(problem, 0.1, feedback="bernoulli")
    for name in ("OptCMDP", "DOPE"):
        with pytest.raises(InputError, match="take the engine cpu"):
            limits.check_row(algorithm(name), known)
    with pytest.raises(InputError, match="take the engine cpu"):
        limits.check_row(UOPT, observed)
    with pytest.raises(InputError, match=r"float32 keeps to 0\.01, not to 1e-09"):
        limits.check_precision("float32", 1e-9)
    limits.check_precision("float64", 1e-9)
    with pytest.raises(InputError, match="unknown precision 'half'"):
        limits.check_precision("half")
    with pytest.raises(InputError, match="Triple-Q runs in float64 only, not in float32"):
        limits.check_row(algorithm("Triple-Q"), known, "float32")
    for family in CARD_FAMILIES.values():
        with pytest.raises(InputError, match="5000 states"):
            family.check(family.form((2, 3, 5000, 2)), 8)


def test_without_a_device_one_sentence_says_so(monkeypatch):
    monkeypatch.setattr(device, "simulated", lambda: False)
    monkeypatch.setattr(device.importlib.util, "find_spec", lambda name: None)
    problem = random_problem(3, 2, 2, 1)
    with pytest.raises(EngineError, match=r"pip install 'cmdplab\[gpu\]'"):
        batch.GpuSession(problem, UOPT, Task.of(problem, 0.1), 0)


@pytest.mark.parametrize(
    "which", ["not slow", pytest.param("slow", marks=pytest.mark.slow)], ids=["quick", "slow"]
)
@pytest.mark.parametrize(
    "cases",
    ["gpu_simulated.py", pytest.param("gpu_simulated_runs.py", marks=pytest.mark.slow)],
)
def test_in_the_simulator_all_is_as_on_the_cpu(cases, which):
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-m", which]
    done = subprocess.run(
        [*command, f"tests/engines/{cases}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


NO_CARD = "there is no CUDA device here, or its driver is too old"
EXPERIMENT = """
name = "small"
episodes = 50
[[problems]]
environment = "three-state"
[[algorithms]]
name = "UOpt-RPGPD"
"""


@pytest.fixture
def no_card(monkeypatch):
    monkeypatch.setattr(device, "missing", lambda: NO_CARD)


@pytest.fixture
def experiment(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(EXPERIMENT)
    return file


def test_without_a_card_gpu_is_refused_and_nothing_is_written(call, no_card, experiment, tmp_path):
    out = tmp_path / "out"
    for command in (
        ("run",),
        ("run", "--precision", "float32"),
        ("compare",),
        ("sweep", experiment),
    ):
        code, _, complaint = call(*command, "--engine", "gpu", "--out", out)
        assert (code, complaint.strip()) == (2, f"cmdplab: {NO_CARD}; the engine cpu works without")
        assert not out.exists()
    code, _, complaint = call("run", "--engine", "auto", "--precision", "float32")
    assert (code, NO_CARD in complaint) == (2, True)
    code, _, complaint = call("sweep", experiment, "--engine", "gpu", "--ray", "local")
    assert (code, "--ray runs on the cores" in complaint) == (2, True)


@pytest.mark.slow
def test_without_a_card_auto_says_so_and_takes_the_cpu(
    call, no_card, experiment, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    few = ("--episodes", "20", "--seeds", "1", "--algorithms", "UOpt-RPGPD")
    compared = ("compare", "--problem", "three-state", *few, "--out", "compared")
    alone = ("run", "--episodes", "20", "--out", "alone")
    for command in (alone, compared, ("sweep", experiment), ("audit", experiment)):
        code, _, said = call(*command, "--engine", "auto")
        assert code == 0, said
        assert (f"engine cpu: {NO_CARD}" in said) == (command[0] != "audit")  # nothing was left


def test_auto_weighs_runs_against_cores(monkeypatch):
    monkeypatch.setattr(limits, "free_memory", lambda: 1 << 36)

    def taken(runs, episodes, cores, sizes=(30, 3, 10, 1)):
        problem = random_problem(*sizes)
        wanted = [choose.Wanted(problem, UOPT, Task.of(problem, 0.1), episodes)] * runs
        return bool(choose._worth(wanted, cores))

    assert taken(4096, 10**6, 16)
    assert taken(10_000, 10**6, 16, (3, 2, 6, 1))  # half an hour of the cores
    assert not taken(64, 10**6, 16)  # the cores are faster
    assert not taken(4096, 100, 16)  # over before a kernel is compiled
