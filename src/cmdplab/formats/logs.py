"""Logged episodes: lists of transitions or a long table, row by row; a complaint names its row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.formats.tables import Columns, columns_of, kept, names, numbered, numbers, ordered
from cmdplab.types import Array, Indices


class Log(NamedTuple):
    """E logged steps in their order, by number."""

    state: Indices  # [E]
    action: Indices  # [E]
    following: Indices  # [E], -1 where an episode ended without saying in which state
    step: Indices  # [E], counted from 0 in each episode
    began: Indices  # the first state of each episode
    signals: dict[str, Array]  # [E] each: the reward, then utilities and costs
    rows: list[str]  # what each step is called
    states: tuple[str, ...]  # names; none where states are numbers
    actions: tuple[str, ...]
    sizes: tuple[int, int]  # [X, A]


def log_of(data: Any, signals: list[str]) -> Log:
    """The log of a table, or of a list of episodes of (state, action, reward, ..., next)."""
    if len(set(signals)) < len(signals):
        raise InputError(f"a column is used twice: {', '.join(signals)}")
    rows = _of_episodes(data, signals) if _episodes(data) else columns_of(data)
    for column in ("episode", "state", "action"):
        rows.column(column)
    state, action, episode = (names(rows, each) for each in ("state", "action", "episode"))
    first = np.array([n == 0 or episode[n] != episode[n - 1] for n in range(len(episode))])
    again = [each for each, new in zip(episode, first, strict=True) if new]
    if len(set(again)) < len(again):
        twice = next(each for each in again if again.count(each) > 1)
        raise InputError(f"the rows of episode {twice} are not together")
    starts = np.flatnonzero(first)
    step = np.arange(len(first)) - np.repeat(starts, np.diff([*starts, len(first)]))
    _check_steps(rows, step)
    if "next" in rows.values:
        following = names(rows, "next")
    else:  # the state of the following row of the same episode; nothing after the last
        ends = [*first[1:], True]
        following = ["" if end else x for end, x in zip(ends, [*state[1:], ""], strict=True)]
    states, actions = ordered([*state, *(each for each in following if each)]), ordered(action)
    at = numbered(state, states)
    return Log(
        state=at,
        action=numbered(action, actions),
        following=numbered(following, states),
        step=step,
        began=at[first],
        signals={each: numbers(rows, each) for each in signals},
        rows=rows.rows,
        states=kept(states),
        actions=kept(actions),
        sizes=(len(states), len(actions)),
    )


def _episodes(data: Any) -> bool:
    """Whether something is a list of episodes and not a table."""
    listed = isinstance(data, list | tuple)
    return listed and not any(isinstance(each, Mapping) for each in data)


def _of_episodes(data: Any, signals: list[str]) -> Columns:
    found: list[dict[str, Any]] = []
    called: list[str] = []
    header = ["state", "action", *signals, "next"]
    for k, episode in enumerate(data):
        if not isinstance(episode, Iterable):
            raise InputError(f"episode {k} is {episode!r}, not a list of steps")
        for h, step in enumerate(episode):
            if not isinstance(step, list | tuple) or len(step) != len(header):
                raise InputError(f"episode {k}, step {h} is not ({', '.join(header)})")
            found.append({"episode": k, **dict(zip(header, step, strict=True))})
            called.append(f"episode {k}, step {h}")
    if not found:
        raise InputError("there is no step in these episodes")
    values = {name: [each[name] for each in found] for name in ("episode", *header)}
    return Columns(values, called)


def _check_steps(rows: Columns, step: Indices) -> None:
    """A column of steps must count every episode from 0, or from 1."""
    if "step" not in rows.values:
        return
    given = numbers(rows, "step")
    wrong = np.flatnonzero(given - given[0] != step)
    if len(wrong) or given[0] not in (0.0, 1.0):
        at = int(wrong[0]) if len(wrong) else 0
        raise InputError(f"{rows.rows[at]}: the step is {given[at]:g}, not the next of its episode")
