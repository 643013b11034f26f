"""`learn`, which lets an algorithm learn an environment with unknown transition probabilities."""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab.algorithms import as_row
from cmdplab.algorithms.custom import Given as GivenAlgorithm, packed
from cmdplab.algorithms.row import Row
from cmdplab.checks import real_number, whole_horizon, whole_number
from cmdplab.cmdp.policy import Policy
from cmdplab.engines.families import LiveSession, live_session
from cmdplab.errors import EnvironmentFailed, InputError, LearnerError, StorageError
from cmdplab.experiments.durable import CHECKPOINT_EVERY, held
from cmdplab.experiments.executors.worker import signals
from cmdplab.files.locks import BusyError
from cmdplab.files.write import writable_folder
from cmdplab.live import files
from cmdplab.live.advice import Sizes, advised
from cmdplab.live.checks import Asked, as_live, first_state, taken_up
from cmdplab.live.environment import (
    Env,
    as_one,
    check_env,
    check_seeds,
    observations,
    own_problem,
    reset_checked,
)
from cmdplab.live.evaluation import LATE
from cmdplab.live.learned import Learned
from cmdplab.live.logs import played_from
from cmdplab.live.masks import Masking, opened
from cmdplab.live.model.baseline import Baseline, certified
from cmdplab.live.model.choice import LAST, Choice, choose
from cmdplab.live.model.estimate import BySteps
from cmdplab.live.model.experience import Experience
from cmdplab.live.model.plans import on_the_model, on_the_multiplier, on_the_slack, promised_by
from cmdplab.live.model.steps import change
from cmdplab.live.session import OnProgress, Playing, Watch
from cmdplab.live.signals import Given, Setup, asked_of
from cmdplab.live.spaces import Discretiser, Spaces


def learn(
    env: Env,
    algorithm: GivenAlgorithm,
    *,
    episodes: int,
    horizon: int | None = None,
    budget: npt.ArrayLike | None = None,
    threshold: npt.ArrayLike | None = None,
    cost: Given = None,
    utilities: Given = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
    cost_range: Any = (0.0, 1.0),
    clip: bool = False,
    discretise: Discretiser | None = None,
    start: Any = None,
    slater_gap: float | None = None,
    mask: Masking | None = None,
    baseline: Any = None,
    bonus_scale: float | None = None,
    dynamics: str | None = None,
    replan: str | None = None,
    seed: int = 0,
    evaluate: int = 10_000,
    data: Any = None,
    checkpoint: str | Path | None = None,
    every: float = CHECKPOINT_EVERY,
    on_progress: OnProgress | None = None,
) -> Learned:
    """Learn a policy for a Gymnasium environment whose transition probabilities are unknown.

    maximise E[sum of rewards] over `horizon` steps, subject to E[sum of costs] <= budget or E[sum
    of utilities] >= threshold. Rewards, costs and utilities are learnt from samples. Tuple, Dict,
    MultiDiscrete and MultiBinary spaces are flattened. `discretise` cuts Box spaces. The copies of
    a `VectorEnv` play one episode each by one policy, which the learner then sees in turn.

    algorithm : a row, the name of one, or a learner from outside: `cmdplab.algorithms.as_row`.
        "auto" takes the advice of `cmdplab.advise`. An algorithm that plans on known transitions
        or needs known rewards (OPSE, Ghosh-Zhou-Shroff, UCBVI, UCRL2) is refused, and `Safe(...)`.
    horizon : H. Longer episodes are cut. After an earlier end rewards and costs are 0. The
        environments of cmdplab have their own horizon, thresholds and masks.
    budget, threshold : a number, or one for each of N constraints.
    cost, utilities : (state, action, next state, reward, info) -> a number in `cost_range`, or N of
        those functions. None takes info["cost"] (N = 1), info["costs"] or info["utilities"].
    reward_range : the lowest and the highest reward of a step, mapped to [0, 1].
    cost_range : the lowest and the highest cost or utility of a step, or N such pairs.
    clip : True clips values outside a range and counts them. False raises an error.
    discretise : `cmdplab.live.Grid` or `Quantiles`, for spaces of real numbers.
    start : the state of every reset, or "several", which adds a step for the learner. None finds
        out by 20 resets.
    slater_gap : for the algorithms that need it.
    mask : [X, A] or [H, X, A] of booleans, true for an allowed action, or a function from a state
        to [A]. None allows all but the actions that info["action_mask"] closes.
    baseline : for the algorithms that begin with a safe policy (DOPE, OptPress-LP): a policy, or
        `cmdplab.live.Baseline`, which says how it is certified.
    bonus_scale : a factor on the widths of the algorithm. None: the algorithm's own.
    dynamics : "stationary" estimates transitions and signals over all steps together, "per-step"
        for each step. None takes "stationary" if the algorithm can, and "per-step" after a test
        has shown that steps differ.
    replan : "every-episode", or "doubling", the default here: a planner whose multipliers are
        optimal or searched plans anew if the visits of some pair have doubled.
    seed : of the environment's first reset, and of the learner's actions.
    evaluate : episodes to play for each policy that is compared. 0: none.
    data : a `Learned` of the same algorithm and sizes, whose learner goes on with these limits, or
        logged episodes as for `cmdplab.fit`, from which the learner learns first.
    checkpoint : a folder to resume from. A checkpoint is written `every` so many seconds, at the
        end, on Ctrl-C or SIGTERM, and if the environment fails (`EnvironmentFailed`). The learner
        goes on to the last bit. The environment is seeded anew.
    on_progress : called with a `Standing` during the run. `cmdplab.live.shown` yields one.
    """
    env = as_one(env)
    check_env(env)
    own = own_problem(env)
    steps = whole_horizon(own.horizon if horizon is None and own is not None else horizon)
    check_seeds(env)
    spaces = Spaces.of(env, discretise, lambda code, n: observations(env, code, n, steps, seed))
    own = own if own is not None and own.states == spaces.states else None
    if own is not None and budget is None and threshold is None:
        threshold = own.threshold
    given = own.mask if own is not None and mask is None else mask
    advice = None
    if algorithm == "auto":
        limits: Any = budget if threshold is None else threshold
        sizes = Sizes(spaces.states, spaces.actions, steps, int(np.size(limits)), known=False)
        advice = advised(sizes, None, safe=baseline is not None)
    chosen = algorithm if advice is None else advice.algorithm
    wanted = (budget, threshold, cost, utilities)
    more = ((reward_range, cost_range), opened(given, spaces, steps), bool(clip))
    world, limit, source = asked_of(spaces, steps, wanted, *more)
    asked = Asked(
        row=as_live(as_row(chosen), dynamics, replan, bonus_scale, data),
        setup=world,
        limit=limit,
        source=source,
        slack=None if slater_gap is None else real_number("slater_gap", slater_gap),
        seed=whole_number("seed", seed),
        episodes=whole_number("episodes", episodes, least=1),
        evaluate=whole_number("evaluate", evaluate),
        baseline=Baseline.of(baseline),
        dynamics=dynamics,
    )
    if not real_number("every", every) >= 0.0:
        raise InputError(f"every is {every}, not a number of seconds")
    with ExitStack() as stack:
        folder = None if checkpoint is None else Path(checkpoint)
        if folder is not None:
            try:
                stack.enter_context(held(writable_folder(folder)))
            except BusyError:
                raise StorageError(f"another process learns in {folder}") from None
        stop = stack.enter_context(signals())
        stop.raises = True
        watch = Watch(stop, on_progress, folder, every, asked.settings(env, start))
        playing, notes = _begun(env, asked, watch, data)
        if advice is not None:
            notes = [f"{advice.algorithm} was chosen: {advice.because[0]}.", *notes]
        began = time.monotonic()
        try:
            playing.learn(asked.episodes)
        except LearnerError:
            raise
        except InputError as error:
            playing.save()
            failed = EnvironmentFailed(str(error))
            if playing.tally.episodes:
                failed.learned = _learned(asked, playing, None, [*notes, str(error)], 0.0)
            raise failed from error.__cause__
        except BaseException:  # an interruption; the learner is whole
            playing.save()
            raise
        seconds = time.monotonic() - began
        playing.save()
        differ = change(playing.steps, playing.setup)
        by_step = None
        if differ is not None:
            notes = [*notes, differ.sentence]
            if spaces.cells:
                notes.append("Cells of a Box are no Markov states, whose steps may differ.")
            by_step = BySteps(playing.steps, differ.leads) if asked.may_plan_by_step else None
        last = Policy(playing.policy(), spaces.labels, f"learnt by {asked.row.name}")
        told = (playing.seen, playing.setup, asked.limit, by_step)
        judge = partial(playing.play, asked.evaluate) if asked.evaluate else None
        choice = choose(last, *told, judge)
    return _learned(asked, playing, choice, notes, seconds)


def _begun(env: Env, asked: Asked, watch: Watch, data: Any) -> tuple[Playing, list[str]]:
    """Begin a run or resume its checkpoint. Complete the settings. Return the run, and notes."""
    folder, settings, spaces = watch.folder, watch.settings, asked.setup.spaces
    sizes = (spaces.states, spaces.actions, 1 + len(asked.limit))
    empty = Experience(*sizes, asked.setup.horizon)
    found = files.find(folder, settings, asked.row, empty) if folder else None
    saved, notes = found or (None, [])
    fresh = saved is None
    if fresh and isinstance(data, Learned):
        saved = taken_up(data, asked, settings)
        notes = [*notes, f"Began with what was learned from {data.episodes:,} episodes before."]
    done = 0 if saved is None else saved.tally.episodes
    if done > asked.episodes:
        raise InputError(f"the checkpoint in {folder} has {done} episodes, beyond {asked.episodes}")
    if done:
        notes = [*notes, f"Resumed after {done:,} episodes: the environment was seeded anew."]
    reset_checked(env, seed=_later(asked.seed, done) if done else asked.seed)
    settings["start"] = first_state(env, spaces, settings["start"])

    setup = asked.begun(settings["start"])
    safe = None
    if asked.baseline is not None:
        told = (env, setup, asked.threshold(setup), asked.seed, settings["baseline"])
        safe = certified(asked.baseline, *told)
        settings["baseline"] = {"returns": safe.told.returns.tolist(), "note": safe.note}

    def begin(row: Row, setup: Setup, state: Any) -> LiveSession:
        task = asked.task(setup, None if safe is None else safe.told)
        return live_session(row, task, state)

    known = data.seen.episodes if isinstance(data, Learned) else 0
    seed = _later(asked.seed, known) if known else asked.seed
    row = asked.row
    if settings["dynamics"] is None:
        settings["dynamics"] = row.dynamics
    elif row.reads("dynamics"):
        row = row.with_settings(dynamics=settings["dynamics"])
    playing = Playing(env, setup, row, begin, seed, saved, watch, asked.may_switch and row.pooled)
    if safe is not None:
        for played in safe.played if fresh else []:
            playing.take(played)
        notes = [*notes, safe.note]
    if fresh and data is not None and not isinstance(data, Learned):
        logged = 0
        for played in played_from(data, playing.setup):
            playing.take(played)
            logged += 1
        notes = [*notes, f"Began with {logged:,} logged episodes."]
    if folder:
        packed(asked.row.name, playing.session.state())  # refuses now what cannot be stored
    return playing, notes


def _learned(
    asked: Asked, playing: Playing, choice: Choice | None, notes: list[str], seconds: float
) -> Learned:
    row, setup = playing.row, playing.setup
    if choice is None:
        last = Policy(playing.policy(), setup.spaces.labels, f"learnt by {row.name}")
        choice = Choice(LAST, last, last, None, None, None, [])
    plan = choice.plan
    notes = [*notes, *choice.notes]
    if plan is not None:
        known = (playing.seen, setup, asked.limit, choice.last.array)
        found = choice.last_evaluation or promised_by(*known)
        prices = (playing.prices, playing.tally.episodes, playing.multiplier())
        notes += [plan.message] if plan.message else []
        notes += on_the_model(plan, setup) + on_the_multiplier(*prices, plan, found, setup)
        notes += on_the_slack(asked.slack, plan, setup)
    warnings = (row.tuning_warning(asked.episodes), row.heuristic)
    sparse = setup.spaces.sparse(playing.tally.episodes, setup.horizon)
    notes += [*playing.remarks(), *([sparse] if sparse else [])]
    notes += [f"{row.name}: {each}." for each in warnings if each]
    return Learned(
        algorithm=row,
        policy=choice.policy,
        multiplier=playing.multiplier(),
        visits=playing.visits(),
        episodes=playing.tally.episodes,
        curve=playing.tally.curve(),
        evaluation=choice.evaluation,
        late=playing.evaluation(playing.tally, LATE),
        limit=asked.limit,
        names=setup.names,
        reward_range=(float(setup.scale.worst[0]), float(setup.scale.best[0])),
        seconds=seconds,
        notes=tuple(notes),
        last=choice.last,
        last_evaluation=choice.last_evaluation,
        planned=plan,
        chosen=choice.name,
        world=setup,
        seen=playing.seen,
        state=playing.session.state(),
        steps=playing.steps,
        leads=choice.leads,
    )


def _later(seed: int, episodes: int) -> int:
    """Return a seed for an environment that goes on after `episodes` episodes."""
    return int(np.random.SeedSequence((seed, episodes)).generate_state(1)[0])
