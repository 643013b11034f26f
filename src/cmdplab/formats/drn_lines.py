"""The lines of a DRN file, one after the other; every error names its line."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.formats.kernels import TEXT_TOLERANCE
from cmdplab.formats.roles import Roles
from cmdplab.types import Array, Indices

ROLES = "// cmdplab "
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_STATE = re.compile(r"state ([0-9]{1,12})(?: +\[([^\[\]]*)\])?((?: .*)?)")
_ACTION = re.compile(r"action ([^\s\[\]]+)(?: +\[([^\[\]]*)\])?\s*")
_LABELS = re.compile(r'(?:\s+(?:"[^"]*"|[^\s"\[\]]+))*\s*')
_ONE_LABEL = re.compile(r'"([^"]*)"|([^\s"]+)')
_KNOWN = ("type", "value_type", "parameters", "reward_models", "nr_states", "nr_choices", "model")


class Model(NamedTuple):
    """An MDP as a file lists it: X states, C choices, E transitions, M reward models."""

    states: int
    start: int
    names: tuple[str, ...]  # [M]
    state_reward: Array  # [X, M]
    owner: Indices  # [C], the state of each choice, ascending
    action: tuple[str, ...]  # [C]
    choice_reward: Array  # [C, M]
    line: Indices  # [C], where each choice stands in the file
    choice: Indices  # [E], ascending
    target: Indices  # [E]
    probability: Array  # [E]
    roles: Roles | None  # from a comment that `write_drn` wrote


class Header(NamedTuple):
    """The lines before @model; -1 for a count that is not declared."""

    names: tuple[str, ...]
    states: int
    choices: int


def parse(path: str, text: str) -> Model:
    """Return the model of a DRN file."""
    lines = text.split("\n")
    sections, roles, body = _sections(path, lines)
    header = _header(path, sections, len(lines))
    listing = _Listing(path, header)
    for number, line in enumerate(lines[body:], start=body + 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("//"):
            listing.take(number, stripped)
    return listing.model(roles)


def _fail(path: str, line: int, sentence: str) -> InputError:
    return InputError(f"{path}, line {line}: {sentence}")


def _sections(path: str, lines: list[str]) -> tuple[dict[str, tuple[int, str]], Roles | None, int]:
    """Return name -> (line, content), our roles, and the line where the body begins."""
    found: dict[str, tuple[int, str]] = {}
    roles, current = None, ""
    for number, line in enumerate((each.strip() for each in lines), start=1):
        if line.startswith(ROLES):
            try:
                roles = Roles.from_json(line.removeprefix(ROLES))
            except InputError as error:
                raise _fail(path, number, str(error)) from None
        elif line.startswith("@"):
            current, _, content = line[1:].partition(":")
            if current == "model":
                return found, roles, number
            if current not in _KNOWN:
                raise _fail(path, number, f"@{current} is not supported")
            if current in found:
                raise _fail(path, number, f"@{current} stands twice")
            found[current] = number, content.strip()
        elif line and not line.startswith("//"):
            if not current:
                raise _fail(path, number, "a DRN file begins with @type: MDP")
            at, before = found[current]
            found[current] = at, f"{before} {line}".strip()
    raise InputError(f"{path} is not a DRN model: it has no line @model")


def _header(path: str, sections: dict[str, tuple[int, str]], lines: int) -> Header:
    at, kind = sections.get("type", (1, ""))
    if kind != "MDP":
        raise _fail(path, at, f"the type is {kind or 'not given'}: only @type: MDP can be read")
    at, values = sections.get("value_type", (1, "double"))
    if values not in ("double", "rational"):
        raise _fail(path, at, f"values of type {values} are not supported")
    at, parameters = sections.get("parameters", (1, ""))
    if parameters:
        raise _fail(path, at, f"parametric models are not supported ({parameters})")
    at, listed = sections.get("reward_models", (1, ""))
    names = tuple(listed.split())
    if len(set(names)) < len(names):
        raise _fail(path, at, "a reward model stands twice")
    counts = [_count(path, sections, each, lines) for each in ("nr_states", "nr_choices")]
    return Header(names, *counts)


def _count(path: str, sections: dict[str, tuple[int, str]], name: str, lines: int) -> int:
    """Return a declared count, at most the number of lines; -1 without a declaration."""
    if name not in sections:
        return -1
    at, text = sections[name]
    if not re.fullmatch("[0-9]{1,12}", text) or int(text) < 1:
        raise _fail(path, at, f"@{name} is {text[:40]!r}, not a positive whole number")
    if int(text) > lines:
        raise _fail(path, at, f"@{name} is {text}, but the file has {lines} lines")
    return int(text)


class _Listing:
    """States, choices and transitions in the order of the file."""

    def __init__(self, path: str, header: Header) -> None:
        self.path, self.header = path, header
        self.state_reward: list[list[float]] = []
        self.starts: list[int] = []
        self.owner: list[int] = []
        self.action: list[str] = []
        self.choice_reward: list[list[float]] = []
        self.line: list[int] = []
        self.choice: list[int] = []
        self.target: list[int] = []
        self.probability: list[float] = []
        self.number = self.state_line = 0  # of the line that is read, of the last state

    def take(self, number: int, text: str) -> None:
        """Read one line of the body."""
        self.number = number
        if text.startswith("state "):
            self._state(text)
        elif text.startswith("action "):
            self._action(text)
        else:
            self._transition(text)

    def _wrong(self, sentence: str) -> InputError:
        return _fail(self.path, self.number, sentence)

    def _state(self, text: str) -> None:
        self._close()
        match = _STATE.fullmatch(text)
        if match is None or _LABELS.fullmatch(match[3]) is None:
            raise self._wrong("expected: state NUMBER [REWARDS] LABELS")
        if int(match[1]) != len(self.state_reward):
            raise self._wrong(f"expected state {len(self.state_reward)}, found {match[1]}")
        labels = [quoted or plain for quoted, plain in _ONE_LABEL.findall(match[3])]
        if labels and labels[0][:1] in ("!", "{"):
            raise self._wrong(f"exit rates and observations ({labels[0]}) are not supported")
        if "init" in labels:
            if self.starts:
                raise self._wrong("a second initial state; one is supported")
            self.starts.append(len(self.state_reward))
        self.state_reward.append(self._rewards(match[2]))
        self.state_line = self.number

    def _action(self, text: str) -> None:
        match = _ACTION.fullmatch(text)
        if match is None:
            raise self._wrong("expected: action NAME [REWARDS]")
        if not self.state_reward:
            raise self._wrong("an action before the first state")
        self._close_choice()
        self.owner.append(len(self.state_reward) - 1)
        self.action.append(match[1])
        self.choice_reward.append(self._rewards(match[2]))
        self.line.append(self.number)

    def _transition(self, text: str) -> None:
        target, colon, value = text.partition(":")
        if not colon or not re.fullmatch("[0-9]{1,12}", target.strip()):
            raise self._wrong(f"{text[:40]!r} is no state, action or TARGET : VALUE")
        if not self.owner or self.owner[-1] != len(self.state_reward) - 1:
            raise self._wrong("a transition before the first action of its state")
        probability = self._value(value)
        if not 0.0 <= probability <= 1.0 + TEXT_TOLERANCE:
            raise self._wrong(f"{value.strip()} is not a probability")
        self.choice.append(len(self.owner) - 1)
        self.target.append(int(target))
        self.probability.append(probability)

    def _rewards(self, text: str | None) -> list[float]:
        names = self.header.names
        if text is None or not text.strip():
            return [0.0] * len(names)
        values = [self._value(each) for each in text.split(",")]
        if len(values) != len(names):
            raise self._wrong(f"{len(values)} rewards, but @reward_models names {len(names)}")
        return values

    def _value(self, text: str) -> float:
        """Return a decimal number, or a fraction of two."""
        above, slash, below = text.strip().partition("/")
        parts = [above, below] if slash else [above]
        if not all(_FLOAT.fullmatch(each) for each in parts):
            kind = "an interval" if "[" in text else "not a number"
            raise self._wrong(f"{text.strip()[:40]!r} is {kind}: only numbers can be read")
        values = [float(each) for each in parts]
        value = values[0] if not slash else values[0] / values[1] if values[1] else math.inf
        if not math.isfinite(value):
            raise self._wrong(f"{text.strip()[:40]!r} is not finite")
        return value

    def _close(self) -> None:
        """Refuse a state without a choice, before the next state begins."""
        if self.state_reward and (not self.owner or self.owner[-1] != len(self.state_reward) - 1):
            last = len(self.state_reward) - 1
            raise _fail(self.path, self.state_line, f"state {last} has no action")
        self._close_choice()

    def _close_choice(self) -> None:
        if self.owner and (not self.choice or self.choice[-1] != len(self.owner) - 1):
            raise _fail(self.path, self.line[-1], f"action {self.action[-1][:40]} leads nowhere")

    def model(self, roles: Roles | None) -> Model:
        """Return the model, after a check of the counts."""
        self._close()
        X, C, M = len(self.state_reward), len(self.owner), len(self.header.names)
        declared = {"states": (self.header.states, X), "choices": (self.header.choices, C)}
        for what, (count, found) in declared.items():
            if count not in (-1, found):
                raise InputError(f"{self.path} declares {count} {what} and lists {found}")
        if not self.starts:
            raise InputError(f"{self.path} has no initial state: none has the label init")
        target = np.array(self.target, dtype=np.int64)
        if target.max() >= X:
            at = int(np.argmax(target >= X))
            line = self.line[self.choice[at]]
            raise _fail(self.path, line, f"the target {target[at]} is none of the {X} states")
        return Model(
            X,
            self.starts[0],
            self.header.names,
            np.array(self.state_reward, dtype=np.float64).reshape(X, M),
            np.array(self.owner, dtype=np.int64),
            tuple(self.action),
            np.array(self.choice_reward, dtype=np.float64).reshape(C, M),
            np.array(self.line, dtype=np.int64),
            np.array(self.choice, dtype=np.int64),
            target,
            np.array(self.probability, dtype=np.float64),
            roles,
        )
