"""Play of single episodes of a live environment, as arrays of the learner's length.

The learner counts steps 0..S - 1 and states 0..X - 1. X is the absorbing state after the end of an
episode. X + 1 is the state before the first one, if episodes begin in several states. T is the
number of steps that the environment played.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from cmdplab.errors import CmdplabError, EnvironmentFailed, InputError, LearnerError
from cmdplab.live.environment import Copies, Env, Info, reset_checked, step_checked
from cmdplab.live.masks import Act
from cmdplab.live.signals import Setup
from cmdplab.types import Array, Indices

Choose = Callable[[Act, int, int, float, Info], int]  # an open action, instead of the learner's


class Played(NamedTuple):
    """Played episode: states, actions and signals in S steps of the learner."""

    states: Indices  # [S + 1]
    actions: Indices  # [S]
    signals: Array  # [1 + N, S], in the user's units, zero after the end
    cut: bool  # True if it was truncated before its last step
    length: int = 0  # T, the environment's steps
    last: int = 0  # the state after them; the absorbing state after an end
    clipped: int = 0  # signals that were beyond their range

    def leads(self, setup: Setup) -> int | None:
        """Return the state after the last step, or None at the horizon, where it is not counted."""
        return None if self.length == setup.horizon else self.last

    def steps(self, setup: Setup) -> tuple[Indices, Indices, int | None, Array]:
        """Return the environment's states [T], actions [T], next state and signals [1 + N, T]."""
        real = slice(setup.lead, setup.lead + self.length)
        return self.states[real], self.actions[real], self.leads(setup), self.signals[:, real]


class _Rolled(NamedTuple):
    """Lists of a played episode. Signals begin at the environment's first step."""

    visited: list[int]
    taken: list[int]
    earned: list[tuple[Any, ...]]
    x: int  # the last state
    ended: bool
    cut: bool

    def played(self, setup: Setup, episode: int) -> Played:
        length = len(self.earned)
        whole = length == setup.horizon
        last = setup.absorbing if self.ended else self.x
        visited = [*self.visited, last] if whole else self.visited  # an earlier cut is an end
        states = np.full(setup.steps + 1, setup.absorbing)
        states[: len(visited)] = visited
        actions = np.zeros(setup.steps, dtype=np.int64)
        actions[: len(self.taken)] = self.taken
        signals, clipped = checked_signals(self.earned, setup, episode)
        early = bool(self.cut and not self.ended) and not whole
        return Played(states, actions, signals, early, length, last, clipped)


def roll_out(
    env: Env,
    setup: Setup,
    act: Act,
    noise: Sequence[float],
    episode: int,
    masked: Choose | None = None,
) -> Played:
    """Play one episode and return it.

    act : draws an action from step, state and uniform. noise : [S], the uniforms. episode : its
    number, for errors. masked : chooses an open action instead of `act`; None: no masks.
    """
    place = [0, episode]
    playing = _rolling(setup, act, noise, masked, place)
    next(playing)
    with _failing(place):
        action = playing.send(reset_checked(env))
        while True:
            told = step_checked(env, action)
            try:
                action = playing.send(told)
            except StopIteration as end:
                rolled: _Rolled = end.value
                break
    return rolled.played(setup, episode)


def roll_out_together(
    env: Copies,
    setup: Setup,
    act: Act,
    noise: Sequence[Sequence[float]],
    first: int,
    masked: Choose | None = None,
) -> list[Played]:
    """Play one episode in each copy with one policy, and return them.

    noise : [copies, S], the uniforms. first : the number of the first episode. Other arguments are
    as in `roll_out`. A copy that has ended plays open actions until all have, which are ignored.
    """
    place = [0, first]
    playing = [_rolling(setup, act, each, masked, place) for each in noise]
    rolled: list[_Rolled | None] = [None] * env.count
    actions = list(map(next, playing))
    with _failing(place):
        for i, begun in enumerate(env.reset_all()):
            place[1] = first + i
            actions[i] = playing[i].send(begun)
        for h in range(setup.horizon):
            place[:] = h, first
            for i, told in enumerate(env.step_all(actions)):
                place[:] = h, first + i
                if rolled[i] is None:
                    try:
                        actions[i] = playing[i].send(told)
                    except StopIteration as end:
                        rolled[i] = end.value
                if rolled[i]:
                    actions[i] = setup.spaces.action(int(np.argmax(told[4].get("action_mask", 0))))
            if all(rolled):
                break
    return [each.played(setup, first + i) for i, each in enumerate(rolled) if each]


def _rolling(
    setup: Setup, act: Act, noise: Sequence[float], masked: Choose | None, place: list[int]
) -> Generator[Any, Any, _Rolled]:
    """Yield the actions of one episode. Receive the results of `reset` and of each step.

    place : [step, episode] for error messages. The step is updated.
    """
    spaces, lead, read = setup.spaces, setup.lead, setup.read
    visited, taken, earned = [setup.first] * lead, [0] * lead, list[tuple[Any, ...]]()
    observation, info = yield
    x, ended, cut = spaces.state(observation), False, False
    if setup.start not in (None, x):
        usual = spaces.observation(setup.start)
        raise InputError(
            f'episodes began in state {usual}, and this one in {observation}: pass start="several"'
        )
    for h in range(lead, setup.steps):
        place[0] = h - lead
        visited.append(x)
        draw = (h, x, noise[h])
        a = act(*draw) if masked is None else masked(act, *draw, info)
        taken.append(a)
        action = spaces.action(a)
        following, reward, ended, cut, info = yield action
        earned.append((reward, *read(observation, action, following, reward, info)))
        observation = following
        if ended:
            break
        x = spaces.state(observation)
        if cut:
            break
    return _Rolled(visited, taken, earned, x, ended, cut)


@contextmanager
def _failing(place: list[int]) -> Iterator[None]:
    """Add step and episode, `place`, to errors of the environment and of its results."""
    try:
        yield
    except LearnerError:
        raise
    except CmdplabError as error:
        raise InputError("{} (step {} of episode {})".format(error, *place)) from error.__cause__
    except (Exception, SystemExit, GeneratorExit) as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        where = "step {} of episode {}".format(*place)
        raise EnvironmentFailed(f"the environment raised {what} ({where})") from error


def checked_signals(earned: list[tuple[Any, ...]], setup: Setup, episode: int) -> tuple[Array, int]:
    """Return signals [1 + N, S] and the number of clipped ones. Refuse values beyond their range.

    earned : 1 + N numbers for each real step. episode : its number, for errors.
    """
    signals = np.zeros((len(setup.names), setup.steps))
    try:
        values = np.array(earned)
        if values.dtype.kind not in "biuf" and not all(map(_is_number, values.flat)):
            raise ValueError  # text that looks like a number is none
        signals[:, setup.lead : setup.lead + len(earned)] = values.astype(float).T
    except (TypeError, ValueError, OverflowError):
        for h, step in enumerate(earned):
            for name, value in zip(setup.names, step, strict=False):
                if not _is_number(value):
                    where = f"step {h} of episode {episode}"
                    raise InputError(f"the {name} at {where} is {value!r}, not a number") from None
        raise InputError(f"episode {episode} gave signals that are not numbers") from None
    worst, best = setup.scale.worst[:, None], setup.scale.best[:, None]
    within = (signals - worst) * (signals - best) <= 0.0  # false for NaN too
    if setup.clip and not within.all() and np.isfinite(signals).all():
        inside = np.clip(signals, np.minimum(worst, best), np.maximum(worst, best))
        return inside, int((~within).sum())
    if not within.all():
        n, h = np.argwhere(~within)[0]
        low, high = sorted((float(setup.scale.worst[n]), float(setup.scale.best[n])))
        wider = np.isfinite(signals[n, h])
        argument = "reward_range" if n == 0 else "cost_range"
        more = f": pass {argument}=(lowest, highest), or clip=True" if wider else ""
        raise InputError(
            f"the {setup.names[n]} at step {h - setup.lead} of episode {episode} is "
            f"{signals[n, h]:g}, outside [{low:g}, {high:g}]{more}"
        )
    return signals, 0


def _is_number(value: Any) -> bool:
    if value is None or isinstance(value, str | bytes):
        return False
    try:
        return np.ndim(value) == 0 and isinstance(float(value), float)
    except (TypeError, ValueError, OverflowError):
        return False
