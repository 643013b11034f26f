"""Readers of logged episodes in three formats, and estimation from logs.

    a list of episodes, each a list of (state, action, reward, costs ..., next state)
    a long table with columns episode, state, action, reward, costs ... and next
    episodes with observations, actions, rewards, terminations and infos, as in Minari

If the next state is None or an empty cell, the episode ended there. If the last next state is
given, the episode was cut. Costs may be left out if a function computes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.checks import whole_horizon
from cmdplab.cmdp.columns import columns_of
from cmdplab.errors import CmdplabError, InputError
from cmdplab.files.read import LONGEST_NUMBER
from cmdplab.live.codes import Named, Whole
from cmdplab.live.environment import part
from cmdplab.live.episodes import Played, checked_signals
from cmdplab.live.learned import Fitted
from cmdplab.live.model.experience import Experience
from cmdplab.live.model.plans import planned_on
from cmdplab.live.signals import Given, Setup, asked_of, signal_names
from cmdplab.live.spaces import Spaces

MINARI = ("observations", "actions", "rewards", "terminations")


class Step(NamedTuple):
    """One logged step, in values of the environment."""

    state: Any
    action: Any
    reward: Any
    costs: tuple[Any, ...]  # N costs, or () if unknown
    following: Any  # None after the end
    info: Mapping[str, Any]
    shown: Any = None  # the observation of an end, for costs that depend on it; None: unknown


def episodes_of(data: Any, signals: Sequence[str]) -> Iterator[list[Step]]:
    """Yield the episodes of a log in any of the formats. signals : the names of the N costs."""
    if isinstance(data, list | tuple) and not (data and isinstance(data[0], Mapping)):
        if data and all(hasattr(data[0], each) for each in MINARI):
            yield from (_of_minari(each) for each in data)
        else:
            yield from (_of_list(k, each, signals) for k, each in enumerate(data))
    elif (
        isinstance(data, Iterable)
        and not isinstance(data, str | Mapping | list | tuple)
        and not any(hasattr(data, each) for each in ("columns", "__fspath__"))
    ):
        yield from (_of_minari(each) for each in data)
    else:
        yield from _of_table(data, signals)


def _of_list(k: int, episode: Any, signals: Sequence[str]) -> list[Step]:
    wanted = ("state", "action", "reward", *signals, "next")
    steps = []
    if not isinstance(episode, list | tuple):
        raise InputError(
            f"episode {k} of the data is {type(episode).__name__}, not a list of steps"
        )
    for h, step in enumerate(episode):
        size = len(step) if isinstance(step, list | tuple) else 0
        if size not in (4, len(wanted)):
            raise InputError(f"step {h} of episode {k} of the data is not ({', '.join(wanted)})")
        state, action, reward, *costs, following = step
        steps.append(Step(state, action, reward, tuple(costs), following, {}))
    return steps


def _of_table(data: Any, signals: Sequence[str]) -> Iterator[list[Step]]:
    rows = columns_of(data)
    for column in ("episode", "state", "action", "reward"):
        rows.column(column)
    has = all(each in rows.values for each in signals)
    costs = list(zip(*(rows.column(each) for each in signals), strict=True)) if has else None
    names, states = rows.values["episode"], rows.values["state"]
    after = rows.values.get("next")
    steps: list[Step] = []
    seen: set[str] = set()
    for n, name in enumerate(names):
        last = n + 1 == len(names) or names[n + 1] != name
        if after is not None:
            following = None if _blank(after[n]) else after[n]
        else:
            following = None if last else states[n + 1]
        paid = () if costs is None else tuple(map(_number, costs[n]))
        told = (states[n], rows.values["action"][n], _number(rows.values["reward"][n]))
        steps.append(Step(*told, paid, following, {}))
        if last:
            if str(name) in seen:
                raise InputError(f"the rows of episode {name} are not together")
            seen.add(str(name))
            yield steps
            steps = []


def _blank(value: Any) -> bool:
    empty = isinstance(value, str) and not value
    return value is None or empty or (isinstance(value, float) and bool(np.isnan(value)))


def _number(cell: Any) -> Any:
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return cell


def _of_minari(episode: Any) -> list[Step]:
    for each in MINARI:
        if not hasattr(episode, each):
            raise InputError(f"a logged episode is {type(episode).__name__}: it has no {each}")
    infos = getattr(episode, "infos", None) or {}
    length = len(episode.rewards)
    steps = []
    for h in range(length):
        ended = h + 1 == length and bool(episode.terminations[h])
        following = None if ended else part(episode.observations, h + 1)
        info = _told(infos, h, length)
        place = (part(episode.observations, h), part(episode.actions, h))
        shown = part(episode.observations, h + 1)
        steps.append(Step(*place, float(episode.rewards[h]), (), following, info, shown))
    return steps


def _told(infos: Mapping[str, Any], h: int, length: int) -> dict[str, Any]:
    sizes = {key: len(value) for key, value in infos.items() if hasattr(value, "__len__")}
    late = {key: size - length for key, size in sizes.items() if size in (length, length + 1)}
    return {key: part(infos[key], h + more) for key, more in late.items()}


def played_from(data: Any, world: Setup) -> Iterator[Played]:
    """Yield the episodes of a log in the learner's numbers. Errors name episode and step."""
    return played_as(episodes_of(data, world.names[1:]), world)


def played_as(logged: Iterable[list[Step]], world: Setup) -> Iterator[Played]:
    """Yield the episodes of `episodes_of` in the learner's numbers."""
    found = False
    for k, steps in enumerate(logged):
        if steps:
            found = True
            yield _played(k, steps, world)
    if not found:
        raise InputError("there is no step in the logged episodes")


def _played(k: int, steps: list[Step], world: Setup) -> Played:
    spaces, lead = world.spaces, world.lead
    if len(steps) > world.horizon:
        raise InputError(f"episode {k} of the data has {len(steps)} steps, beyond {world.horizon}")
    states = np.full(world.steps + 1, world.absorbing)
    states[:lead] = world.first
    actions = np.zeros(world.steps, dtype=np.int64)
    earned = []
    for h, step in enumerate(steps):
        try:
            states[lead + h] = numbered(spaces.observed, spaces.labels.states, step.state)
            actions[lead + h] = numbered(spaces.chosen, spaces.labels.actions, step.action)
            if step.costs:
                signals = (step.reward, *step.costs)
            else:
                after = step.shown if step.following is None else step.following
                told = (step.state, step.action, after, step.reward, step.info)
                signals = (step.reward, *world.read(*told))
        except CmdplabError as error:
            raise InputError(f"step {h} of episode {k} of the data: {error}") from None
        earned.append(signals)
        after = steps[h + 1].state if h + 1 < len(steps) else None
        if after is not None and step.following is None:
            raise InputError(f"episode {k} of the data goes on after its end, step {h}")
    if world.start is not None and states[lead] != world.start:
        raise InputError(
            f"episode {k} of the data begins in {steps[0].state!r}, not where the environment "
            'does: pass start="several"'
        )
    end = steps[-1].following
    last = world.absorbing
    if end is not None:
        last = numbered(spaces.observed, spaces.labels.states, end)
        if len(steps) == world.horizon:
            states[-1] = last
    sums, clipped = checked_signals(earned, world, k)
    cut = end is not None and len(steps) < world.horizon
    return Played(states, actions, sums, cut, len(steps), last, clipped)


def numbered(code: Any, names: tuple[str, ...], value: Any) -> int:
    """Return the number of a state or action from its value or its name."""
    if isinstance(value, str):
        if value in names:
            return names.index(value)
        if value.lstrip("-").isdecimal():
            value = int(value)
    return int(code.number(value))


def fit(
    data: Any,
    *,
    horizon: int | None = None,
    budget: npt.ArrayLike | None = None,
    threshold: npt.ArrayLike | None = None,
    cost: Given = None,
    utilities: Given = None,
    reward_range: tuple[float, float] | None = None,
    cost_range: Any = (0.0, 1.0),
    spaces: Spaces | None = None,
) -> Fitted:
    """Estimate a CMDP from logged episodes, and plan on it.

    data : a list of episodes of (state, action, reward, costs ..., next state), a table with
        columns episode, state, action, reward, cost (or cost 1, cost 2, ...) and next, or episodes
        in the form of Minari. No next state means that the episode ended.
    horizon : H; default: the longest episode. The other arguments are those of `learn`.
    reward_range : default: the range of the logged rewards and zero.
    spaces : those of an environment (`Spaces.of(env)`); default: the states and actions of the log.

    Untried pairs have the worst signals, so that the plan avoids them.
    """
    limits: Any = budget if threshold is None else threshold
    names = signal_names("cost" if threshold is None else "utility", int(np.size(limits)))
    data = list(data) if hasattr(data, "__next__") else data  # an iterator can be read only once
    logged = [each for each in episodes_of(data, names[1:]) if each]
    if not logged:
        raise InputError("there is no step in the logged episodes")
    steps = whole_horizon(max(map(len, logged)) if horizon is None else horizon)
    found = spaces or _spaces(logged)
    wanted = (budget, threshold, cost, utilities)
    ranges = (_range(logged) if reward_range is None else reward_range, cost_range)
    world, limit, _ = asked_of(found, steps, wanted, ranges)
    words = found.labels.states
    began = {numbered(found.observed, words, each[0].state) for each in logged}
    world = world._replace(start=began.pop() if len(began) == 1 else None)
    seen = Experience(found.states, found.actions, len(world.names))
    cut = 0
    for played in played_as(logged, world):
        cut += played.cut
        seen.add(*played.steps(world))
    plan = planned_on(seen, world, limit, np.zeros(len(limit)))
    notes = [plan.message] if plan.message else []
    if cut:
        notes.append(f"{cut:,} episodes do not say how they end before step {steps}.")
    return Fitted(plan.policy, plan, limit, world, seen, tuple(notes))


def _range(logged: list[list[Step]]) -> tuple[float, float]:
    try:
        values = [float(step.reward) for episode in logged for step in episode]
    except (TypeError, ValueError, OverflowError):
        raise InputError("a reward of the data is not a number") from None
    if not np.isfinite(values).all():
        raise InputError("a reward of the data is not a finite number")
    low, high = min(0.0, *values), max(0.0, *values)
    return (low, high) if low < high else (low, low + 1.0)


def _spaces(logged: list[list[Step]]) -> Spaces:
    states, actions = dict[Any, None](), dict[Any, None]()
    for episode in logged:
        for step in episode:
            states[_key(step.state)] = actions[_key(step.action)] = None
        if episode[-1].following is not None:
            states[_key(episode[-1].following)] = None
    return Spaces(_log_code(list(states)), _log_code(list(actions)))


def _log_code(values: list[Any]) -> Whole | Named:
    if all(each.isdecimal() for each in values):
        largest = max(values, key=lambda each: (len(each), each))
        if len(largest) > LONGEST_NUMBER:
            raise InputError(f"the log numbers a state or an action {largest}")
        return Whole(1 + max(map(int, values)))
    return Named(tuple(sorted(values)))


def _key(value: Any) -> str:
    return str(value.item() if isinstance(value, np.generic) else value)
