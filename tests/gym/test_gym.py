"""Gymnasium environments play the very problem, alone, in vectors, and through other interfaces."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from conftest import problems, random_policy, random_problem
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, strategies as st
from scipy.stats import chisquare
from test_docs import run_blocks

from cmdplab import InputError, make
from cmdplab.cmdp.exact import returns
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Dense, Sparse
from cmdplab.engines.host import roll_out
from cmdplab.environments import ENVIRONMENTS
from cmdplab.gym import (
    FromSafety,
    FromVectorReward,
    ProblemEnv,
    ProblemVectorEnv,
    TimeAware,
    ToSafety,
    ToVectorReward,
    identifier,
    register,
)
from cmdplab.gym.dynamics import Successors
from cmdplab.gym.env import HERE, TIME, picture


def masked() -> CMDP:
    """Action 1 is closed in state 0 at the first step; from there it would lead to state 1."""
    mask = np.ones((3, 2, 2), dtype=bool)
    mask[0, 0, 1] = False
    kernel = np.zeros((2, 2, 2))
    kernel[..., 1] = 1.0
    return replace(random_problem(2, 2, 3, 1), transition=kernel, start=0, mask=mask)


def episode(env: gymnasium.Env, actions, seed=None) -> list:
    first = env.reset(seed=seed)
    return [first, *(env.step(action) for action in actions)]


def same(ours, theirs) -> None:
    """Equal to the last bit, with the same types, keys, shapes and kinds of numbers."""
    assert type(ours) is type(theirs)
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        same([ours[key] for key in ours], [theirs[key] for key in ours])
    elif isinstance(ours, tuple | list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
    elif isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_registered_environment_passes_gymnasiums_checks(name):
    check_env(gymnasium.make(identifier(name)).unwrapped)


MASKED = [name for name in ENVIRONMENTS if make(name).mask is not None]


@pytest.mark.parametrize("name", MASKED)
def test_sampled_actions_can_be_played_closed_ones_included(name):
    """The checks play too few of them to be sure to meet a closed one."""
    env = gymnasium.make(identifier(name)).unwrapped
    env.action_space.seed(0)
    closed = 0
    for seed in range(50):
        state, _ = env.reset(seed=seed)
        for _ in range(env.problem.horizon):
            now, reward, _, _, info = env.step(env.action_space.sample())
            closed += info["closed"]
            assert not info["closed"] or (now, reward) == (state, 0.0)
            state = now
    assert closed


@given(problems(), st.booleans())
def test_random_problems_pass_gymnasiums_checks(problem, sparse):
    kernel = Sparse.of(problem.transition) if sparse else problem.transition
    check_env(ProblemEnv(replace(problem, transition=kernel)), skip_render_check=True)


def test_identifiers_are_names_in_camel_case_with_a_version():
    version = getattr(ENVIRONMENTS["media-streaming"], "version", 0)
    assert identifier("media-streaming") == f"cmdplab/MediaStreaming-v{version}"


def test_registering_again_changes_nothing():
    before = dict(gymnasium.registry)
    register()
    assert before == gymnasium.registry
    assert {identifier(name) for name in ENVIRONMENTS} <= before.keys()


def test_gymnasium_finds_the_environments_without_an_import_of_ours():
    spec = f"cmdplab.gym:{identifier('media-streaming')}"
    program = f"import gymnasium; print(gymnasium.make({spec!r}).reset(seed=0)[0])"
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "0\n"


def test_the_instance_seed_chooses_the_problem():
    env = gymnasium.make(identifier("random-printed"), instance_seed=3)
    np.testing.assert_array_equal(env.unwrapped.problem.reward, make("random-printed", 3).reward)
    with pytest.raises(InputError, match="takes no instance seed"):
        gymnasium.make(identifier("three-state"), instance_seed=3)


def test_an_episode_is_the_problems_own():
    """The numbers of the infos are the problem's; the horizon terminates and never truncates."""
    problem = random_problem(5, 3, 4, 2)
    env = ProblemEnv(problem)
    state, info = env.reset(seed=1)
    assert (state, info["step"]) == (problem.start, 0)
    assert [info["cost"], *info["costs"], *info["utilities"]] == [0.0] * 5
    for h, action in enumerate([2, 0, 1, 1]):
        now, reward, terminated, truncated, info = env.step(action)
        signals = problem.reward[:, h, state, action]
        assert reward == signals[0]
        np.testing.assert_array_equal(info["utilities"], signals[1:])
        np.testing.assert_array_equal(info["costs"], 1.0 - signals[1:])
        assert info["cost"] == pytest.approx(2.0 - signals[1:].sum(), abs=1e-15)
        assert (info["step"], terminated, truncated) == (h + 1, h == 3, False)
        assert problem.table[h, state, action, now] > 0.0
        state = now


@given(problems(), st.integers(0, 10**6), st.booleans())
def test_states_are_drawn_as_the_host_engine_draws_them(problem, seed, sparse):
    """The same uniforms lead to the same states, whichever way the kernel is stored."""
    rng = np.random.default_rng(seed)
    actions = rng.integers(problem.actions, size=problem.horizon)
    policy = np.broadcast_to(
        np.eye(problem.actions)[actions][:, None],
        (problem.horizon, problem.states, problem.actions),
    )
    kernel = Sparse.of(problem.transition) if sparse else problem.transition
    env = ProblemEnv(replace(problem, transition=kernel))
    steps = episode(env, actions, seed)
    noise = np.random.Generator(np.random.PCG64(seed)).random(problem.horizon)
    told = roll_out(problem, policy, np.stack([np.zeros_like(noise), noise], axis=-1))
    assert [each[0] for each in steps] == told.states.tolist()


def test_a_uniform_on_a_step_of_the_distribution_function_belongs_to_the_next_state():
    """P = (0, 1/2, 0, 1/4, 1/4 - tiny): u < F(y) decides, and the last state takes the rest."""
    row = np.array([0.0, 0.5, 0.0, 0.25, 0.25 - 2.0**-50])
    successors = Successors.of(Dense(np.broadcast_to(row, (1, 5, 1, 5))), 0)
    uniforms = np.array([0.0, np.nextafter(0.5, 0.0), 0.5, 0.75, np.nextafter(1.0, 0.0)])
    expected = [1, 1, 3, 4, 4]
    assert [successors.draw(2, u) for u in uniforms] == expected
    assert successors.draw_each(np.full(5, 2), uniforms).tolist() == expected


def test_the_same_seed_gives_the_same_episodes():
    problem = random_problem(6, 2, 5, 1)
    one, other = ProblemEnv(problem), ProblemEnv(problem)
    actions = [0, 1, 1, 0, 1]
    same(episode(one, actions, 7), episode(other, actions, 7))
    same(episode(one, actions), episode(other, actions))  # and goes on alike
    assert [s[0] for s in episode(one, actions, 7)] != [s[0] for s in episode(one, actions, 8)]


def test_transitions_have_the_kernels_frequencies():
    problem = random_problem(6, 2, 2, 1, concentration=1.0)
    envs = ProblemVectorEnv(problem, 20_000)
    envs.reset(seed=0)
    states, *_ = envs.step(np.ones(20_000, dtype=np.int64))
    seen = np.bincount(states, minlength=6)
    expected = 20_000 * problem.table[0, problem.start, 1]
    assert chisquare(seen, expected).pvalue > 0.01


def test_the_mean_return_of_a_policy_is_the_exact_one():
    problem = random_problem(5, 3, 4, 2)
    policy = random_policy(problem, 1)
    envs, rng, n = ProblemVectorEnv(problem, 20_000), np.random.default_rng(2), 20_000
    states, _ = envs.reset(seed=3)
    total = np.zeros((n, 3))
    for h in range(problem.horizon):
        below = np.cumsum(policy[h, states], axis=1) < rng.random((n, 1))
        states, rewards, _, _, infos = envs.step(np.minimum(below.sum(axis=1), 2))
        total += np.column_stack([rewards, infos["utilities"]])
    error = total.std(axis=0) / np.sqrt(n)
    assert (np.abs(total.mean(axis=0) - returns(problem, policy)) < 4 * error).all()


@given(problems(), st.integers(1, 5), st.integers(0, 10**6), st.booleans())
def test_a_vector_is_gymnasiums_own_vector_of_single_ones(problem, copies, seed, close):
    """To the last bit, through ends of episodes, closed actions, resets, seeds for each copy."""
    if close and problem.actions > 1:
        mask = np.ones((problem.horizon, problem.states, problem.actions), dtype=bool)
        mask[:, :, -1] = False
        problem = replace(problem, mask=mask)
    ours = ProblemVectorEnv(problem, copies)
    theirs = SyncVectorEnv([lambda: ProblemEnv(problem)] * copies)
    rng = np.random.default_rng(seed)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    for seeds in (seed, None, [seed + 5 * copy for copy in range(copies)]):
        same(ours.reset(seed=seeds), theirs.reset(seed=seeds))
        for _ in range(rng.integers(3 * problem.horizon + 2)):
            actions = rng.integers(problem.actions, size=copies)
            same(ours.step(actions), theirs.step(actions))


def test_noise_drawn_ahead_is_the_noise_drawn_when_needed(monkeypatch):
    problem = random_problem(6, 2, 3, 1)
    runs = []
    for ahead in (1, 7, 256):
        monkeypatch.setattr("cmdplab.gym.vector.AHEAD", ahead)
        envs = ProblemVectorEnv(problem, 3)
        envs.reset(seed=5)
        runs.append([envs.step(np.array([0, 1, 1])) for _ in range(40)])
    same(runs[0], runs[1])
    same(runs[0], runs[2])


def test_make_vec_takes_our_vector():
    envs = gymnasium.make_vec(identifier("random-printed"), num_envs=3, instance_seed=2)
    assert isinstance(envs, ProblemVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    np.testing.assert_array_equal(envs.problem.reward, make("random-printed", 2).reward)


def test_what_cannot_be_played_is_refused():
    env = ProblemEnv(masked(), strict=True)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    for wrong in (2, -1, 0.5, "left", None):
        with pytest.raises(InputError, match=r"is not one of 0\.\.1"):
            env.step(wrong)
    with pytest.raises(InputError, match="action 1 is not allowed in state 0 at step 0"):
        env.step(1)
    with pytest.raises(InputError, match="'state' was given"):
        env.reset(options={"state": 1})
    env.reset()
    for _ in range(3):
        env.step(0)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    with pytest.raises(InputError, match="render_mode is 'human'"):
        ProblemEnv(masked(), render_mode="human")


def test_a_vector_refuses_the_same():
    envs = ProblemVectorEnv(masked(), 2, strict=True)
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(np.zeros(2, dtype=int))
    envs.reset(seed=0)
    for wrong in ([0, 2], [-1, 0]):
        with pytest.raises(InputError, match=r"is not one of 0\.\.1"):
            envs.step(np.array(wrong))
    for wrong in ([0], [0.0, 1.0], [[0, 1]]):
        with pytest.raises(InputError, match="2 whole numbers"):
            envs.step(np.array(wrong))
    with pytest.raises(InputError, match=r"action 1 is not allowed in state 0 .*\(copy 1\)"):
        envs.step(np.array([0, 1]))
    with pytest.raises(InputError, match="'reset_mask' was given"):
        envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(InputError, match="3 seeds were given for 2 copies"):
        envs.reset(seed=[1, 2, 3])
    for wrong in (0, 1.5, None):
        with pytest.raises(InputError, match=f"num_envs is {wrong}, not a whole number >= 1"):
            ProblemVectorEnv(masked(), wrong)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_closed_action_stays_for_nothing(sparse):
    """The row of the kernel, which is open at later steps and leaves the state, is not followed."""
    problem = masked()
    if sparse:
        problem = replace(problem, transition=Sparse.of(problem.transition[0]))
    env, envs = ProblemEnv(problem), ProblemVectorEnv(problem, 2)
    env.reset(seed=0)
    state, reward, _, _, info = env.step(1)
    assert (state, reward, info["closed"], info["cost"]) == (0, 0.0, True, 1.0)
    assert (info["utilities"].tolist(), info["costs"].tolist()) == ([0.0], [1.0])
    state, *_, info = env.step(1)  # open from now on
    assert (state, info["closed"]) == (1, False)
    envs.reset(seed=0)
    states, rewards, _, _, infos = envs.step(np.array([0, 1]))
    assert states.tolist() == [1, 0]
    assert rewards.tolist() == [problem.reward[0, 0, 0, 0], 0.0]
    assert infos["closed"].tolist() == [False, True]


def test_make_takes_strict():
    name = identifier("inventory")
    env, envs = gymnasium.make(name, strict=True), gymnasium.make_vec(name, 2, strict=True)
    assert env.unwrapped.strict
    assert envs.strict
    assert not gymnasium.make(name).unwrapped.strict


def test_seeds_in_an_array_are_seeds_in_a_list():
    one, other = (ProblemVectorEnv(random_problem(6, 2, 5, 1), 3) for _ in range(2))
    one.reset(seed=np.array([4, 9, 2]))
    other.reset(seed=[4, 9, 2])
    actions = np.array([0, 1, 1])
    same([one.step(actions) for _ in range(12)], [other.step(actions) for _ in range(12)])


@pytest.mark.parametrize(
    "seed", [1.5, "12", True, -1, [1, 2.5], [1, -2], np.array([0.0, 1.0]), np.array([[1], [2]])]
)
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(InputError, match=r"seed is .*not a whole number >= 0"):
        ProblemVectorEnv(masked(), 2).reset(seed=seed)


@pytest.mark.parametrize("seed", [1.5, "12", True, -1])
def test_what_is_no_seed_of_a_single_one_is_refused(seed):
    with pytest.raises(InputError, match=r"seed is .*not a whole number >= 0"):
        ProblemEnv(masked()).reset(seed=seed)


def test_the_mask_is_offered_as_gymnasium_samples_it():
    env = ProblemEnv(masked())
    _, info = env.reset(seed=0)
    np.testing.assert_array_equal(info["action_mask"], np.array([1, 0], dtype=np.int8))
    assert {int(env.action_space.sample(info["action_mask"])) for _ in range(20)} == {0}
    for _ in range(3):
        *_, info = env.step(0)
    np.testing.assert_array_equal(info["action_mask"], [1, 1])  # nothing is chosen any more
    assert "action_mask" not in ProblemEnv(random_problem(2, 2, 3, 1)).reset()[1]


def test_a_problem_too_large_for_a_table_can_be_played():
    X = 20_000  # a table would have 8e8 entries
    here = np.arange(X)[:, None]
    successor = np.stack([here, (here + 1) % X], axis=-1)
    problem = CMDP(
        Sparse(successor, np.full((X, 1, 2), 0.5)), np.ones((1, X, 1)), np.zeros(0), horizon=3
    )
    states = [step[0] for step in episode(ProblemEnv(problem), [0, 0, 0], 4)]
    assert set(np.diff(states)) <= {0, 1}
    assert states[0] == 0


def test_time_aware_observations_are_the_state_and_the_step():
    problem = random_problem(5, 2, 3, 1)
    bare, timed = ProblemEnv(problem), TimeAware(ProblemEnv(problem))
    plain = episode(bare, [1, 0, 1], 2)
    for h, (one, other) in enumerate(zip(plain, episode(timed, [1, 0, 1], 2), strict=True)):
        assert other[0].tolist() == [one[0], h]
        assert other[0] in timed.observation_space
        same(one[1:], other[1:])
    assert timed.observation_space == gymnasium.spaces.MultiDiscrete([5, 4])


def test_six_things_and_back():
    problem = random_problem(5, 2, 3, 2)
    actions = [1, 0, 1]
    plain = episode(ProblemEnv(problem), actions, 2)
    six = episode(ToSafety(ProblemEnv(problem)), actions, 2)
    for five, other in zip(plain[1:], six[1:], strict=True):
        state, reward, terminated, truncated, info = five
        same(other, (state, reward, info["cost"], terminated, truncated, info))
    same(episode(FromSafety(ToSafety(ProblemEnv(problem))), actions, 2), plain)


def test_vector_rewards_and_back():
    problem = random_problem(5, 2, 3, 2)
    actions = [1, 0, 1]
    plain = episode(ProblemEnv(problem), actions, 2)
    env = ToVectorReward(ProblemEnv(problem))
    for five, other in zip(plain[1:], episode(env, actions, 2)[1:], strict=True):
        assert other[1] in env.reward_space
        assert other[1].tolist() == [five[1], *five[4]["utilities"]]
    assert env.reward_space == env.unwrapped.reward_space  # where MO-Gymnasium looks
    same(episode(FromVectorReward(env), actions, 2), plain)


def test_other_units_of_a_vector_reward_are_said():
    env = FromVectorReward(ToVectorReward(ProblemEnv(random_problem(5, 2, 3, 2))), lambda r: -r[1:])
    env.reset(seed=0)
    *_, info = env.step(0)
    np.testing.assert_array_equal(info["costs"], -info["utilities"])
    assert info["cost"] == -info["utilities"].sum()


class Foreign(gymnasium.Env):
    """Steps as Gymnasium's, with nothing of ours."""

    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 1.0, False, False, {}


@pytest.mark.parametrize(
    ("wrap", "sentence"),
    [
        (ToSafety, 'puts no info."cost".'),
        (FromSafety, "returned 5 things, not Safety-Gymnasium's six"),
        (ToVectorReward, "has no reward_space"),
        (FromVectorReward, "the reward is 1.0, not an array with the objective first"),
        (TimeAware, "does not come from a cmdplab problem"),
    ],
)
def test_a_converter_on_another_environment_is_one_sentence(wrap, sentence):
    with pytest.raises(InputError, match=sentence):
        wrap(Foreign()).step(0)


def test_a_line_is_drawn():
    env = gymnasium.make(identifier("media-streaming"), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == f"{env.unwrapped.problem.name}: step 0 of 10, state 0"


def test_a_picture_has_one_dark_cell_where_the_state_is_and_a_bar_as_long_as_the_time():
    env = gymnasium.make(identifier("media-streaming"), render_mode="rgb_array")
    state, _ = env.reset(seed=0)
    problem = env.unwrapped.problem
    for step in range(4):
        drawn = env.render()
        assert (drawn.dtype, drawn.ndim, drawn.shape[2]) == (np.uint8, 3, 3)
        dark = np.argwhere((drawn == HERE).all(axis=-1))
        columns = int(np.ceil(np.sqrt(problem.states)))
        size = drawn.shape[1] // columns
        cells = {(y // size) * columns + x // size for y, x in dark.tolist()}
        assert cells == {state}
        bar = (drawn[-1] == TIME).all(axis=-1).sum() / drawn.shape[1]
        assert bar == pytest.approx(step / problem.horizon, abs=1 / drawn.shape[1])
        state, *_ = env.step(env.action_space.sample())


def test_many_states_still_make_a_picture():
    drawn = picture(123_456, 250_000, 0.5)
    assert (drawn == HERE).all(axis=-1).sum() == 1


def test_a_video_can_be_recorded_of_our_environments():
    env = gymnasium.make(identifier("inventory"), render_mode="rgb_array")
    env = gymnasium.wrappers.RenderCollection(env)
    env.reset(seed=0)
    env.step(0)
    assert len(env.render()) == 2


@pytest.mark.parametrize("mode", ["vector_entry_point", "sync"])
def test_costs_are_told_on_every_step_of_a_vector_that_goes_on(mode):
    envs = gymnasium.make_vec(identifier("media-streaming"), num_envs=3, vectorization_mode=mode)
    envs.reset(seed=1)
    spent = np.zeros(3)
    for _ in range(24):
        *_, infos = envs.step(envs.action_space.sample())
        spent += infos["cost"]
        assert infos["costs"].shape == (3, 1)
    assert (spent > 0.0).all()


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_blocks("docs/gymnasium.md")
