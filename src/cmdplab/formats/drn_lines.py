"""Parser of the lines of a DRN file. Every error names its line."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.transitions import ROW_SUM_TOLERANCE
from cmdplab.errors import InputError, naming
from cmdplab.formats.assemble import Roles
from cmdplab.formats.kernels import TEXT_TOLERANCE
from cmdplab.types import Array, Indices

ROLES = "// cmdplab "
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_STATE = re.compile(r"state ([0-9]{1,12})(?: +\[([^\[\]]*)\])?((?: .*)?)")
_ACTION = re.compile(r"action ([^\s\[\]]+)(?: +\[([^\[\]]*)\])?\s*")
_LABELS = re.compile(r'(?:\s+(?:"[^"]*"|[^\s"\[\]]+))*\s*')
_ONE_LABEL = re.compile(r'"([^"]*)"|([^\s"]+)')
_COUNT = re.compile("[0-9]{1,12}")
_KNOWN = ("type", "value_type", "parameters", "reward_models", "nr_states", "nr_choices", "model")


class Model(NamedTuple):
    """MDP of a DRN file: X states, C choices (pairs), E transitions, M reward models."""

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
    probability: Array  # [E], those of a choice sum to one
    roles: Roles | None  # from a comment that `write_drn` wrote


class Parser:
    """Parser of the lines of the file `path`."""

    def __init__(self, path: str, lines: list[str]) -> None:
        self.path, self.lines = path, lines
        self.number, self.section = 0, ""  # number and section of the present line
        self.sections: dict[str, tuple[int, str]] = {}  # name -> (line, content)
        self.roles: Roles | None = None
        self.names: tuple[str, ...] = ()
        self.counts: dict[str, int] = {}  # declared numbers of states and choices
        self.starts: list[int] = []
        self.states: list[tuple[int, list[float]]] = []  # (line, rewards)
        self.choices: list[tuple[int, int, str, list[float]]] = []  # (line, state, action, rewards)
        self.entries: list[float] = []  # choice, target, probability, one after the other

    def model(self) -> Model:
        """Parse all lines and return the checked model."""
        for number, line in enumerate(map(str.strip, self.lines), start=1):
            self.number = number
            if self.section != "model":
                self._head(line)
            elif line.startswith("state "):
                self._state(line)
            elif line.startswith("action "):
                self._action(line)
            elif line and not line.startswith("//"):
                self._transition(line)
        if self.section != "model":
            raise InputError(f"{self.path} is not a DRN model: it has no line @model")
        return self._checked()

    def _wrong(self, sentence: str, line: int = 0) -> InputError:
        return InputError(f"{self.path}, line {line or self.number}: {sentence}")

    def _head(self, line: str) -> None:
        if line.startswith(ROLES):
            with naming(f"{self.path}, line {self.number}"):
                self.roles = Roles.from_json(line.removeprefix(ROLES))
        elif line.startswith("@"):
            self.section, _, content = line[1:].partition(":")
            if self.section not in _KNOWN:
                raise self._wrong(f"@{self.section} is not supported")
            if self.section in self.sections:
                raise self._wrong(f"@{self.section} stands twice")
            self.sections[self.section] = self.number, content.strip()
            if self.section == "model":
                self._check_head()
        elif line and not line.startswith("//"):
            if not self.section:
                raise self._wrong("a DRN file begins with @type: MDP")
            at, before = self.sections[self.section]
            self.sections[self.section] = at, f"{before} {line}".strip()

    def _check_head(self) -> None:
        at, kind = self.sections.get("type", (1, ""))
        if kind != "MDP":
            said = f"the type is {kind or 'not given'}: only @type: MDP can be read"
            raise self._wrong(said, at)
        at, values = self.sections.get("value_type", (1, "double"))
        if values not in ("double", "rational"):
            raise self._wrong(f"values of type {values} are not supported", at)
        at, parameters = self.sections.get("parameters", (1, ""))
        if parameters:
            raise self._wrong(f"parametric models are not supported ({parameters})", at)
        at, listed = self.sections.get("reward_models", (1, ""))
        self.names = tuple(listed.split())
        if len(set(self.names)) < len(self.names):
            raise self._wrong("a reward model stands twice", at)
        for name in ("nr_states", "nr_choices"):
            at, text = self.sections.get(name, (1, "1"))
            if not _COUNT.fullmatch(text) or int(text) < 1:
                raise self._wrong(f"@{name} is {text[:40]!r}, not a positive whole number", at)
            if int(text) > len(self.lines):
                raise self._wrong(
                    f"@{name} is {text}, but the file has {len(self.lines)} lines", at
                )
            if name in self.sections:
                self.counts[name.removeprefix("nr_")] = int(text)

    def _state(self, text: str) -> None:
        match = _STATE.fullmatch(text)
        if match is None or _LABELS.fullmatch(match[3]) is None:
            raise self._wrong("expected: state NUMBER [REWARDS] LABELS")
        if int(match[1]) != len(self.states):
            raise self._wrong(f"expected state {len(self.states)}, found {match[1]}")
        labels = [quoted or plain for quoted, plain in _ONE_LABEL.findall(match[3])]
        if labels and labels[0][:1] in ("!", "{"):
            raise self._wrong(f"exit rates and observations ({labels[0]}) are not supported")
        if "init" in labels:
            if self.starts:
                raise self._wrong("a second initial state; one is supported")
            self.starts.append(len(self.states))
        self.states.append((self.number, self._rewards(match[2])))

    def _action(self, text: str) -> None:
        match = _ACTION.fullmatch(text)
        if match is None:
            raise self._wrong("expected: action NAME [REWARDS]")
        if not self.states:
            raise self._wrong("an action before the first state")
        owner = len(self.states) - 1
        self.choices.append((self.number, owner, match[1], self._rewards(match[2])))

    def _transition(self, text: str) -> None:
        target, colon, value = text.partition(":")
        if not colon or not _COUNT.fullmatch(target.strip()):
            raise self._wrong(f"{text[:40]!r} is no state, action or TARGET : VALUE")
        if not self.choices or self.choices[-1][1] != len(self.states) - 1:
            raise self._wrong("a transition before the first action of its state")
        probability = self._value(value)
        if not 0.0 <= probability <= 1.0 + TEXT_TOLERANCE:
            raise self._wrong(f"{value.strip()} is not a probability")
        self.entries += (len(self.choices) - 1, int(target), probability)

    def _rewards(self, text: str | None) -> list[float]:
        if text is None or not text.strip():
            return [0.0] * len(self.names)
        values = [self._value(each) for each in text.split(",")]
        if len(values) != len(self.names):
            named = f"@reward_models names {len(self.names)}"
            raise self._wrong(f"{len(values)} rewards, but {named}")
        return values

    def _value(self, text: str) -> float:
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

    def _checked(self) -> Model:
        X, C, M = len(self.states), len(self.choices), len(self.names)
        lines, owners, actions, paid = zip(*self.choices, strict=True) if C else ((), (), (), ())
        owner, line = np.array(owners, dtype=np.int64), np.array(lines, dtype=np.int64)
        listed = np.array(self.entries, dtype=np.float64).reshape(-1, 3)
        choice, target = listed[:, 0].astype(np.int64), listed[:, 1].astype(np.int64)
        if len(alone := np.setdiff1d(np.arange(X), owner)):
            raise self._wrong(f"state {alone[0]} has no action", self.states[alone[0]][0])
        if len(alone := np.setdiff1d(np.arange(C), choice)):
            raise self._wrong(f"action {actions[alone[0]][:40]} leads nowhere", line[alone[0]])
        for what, count in self.counts.items():
            found = X if what == "states" else C
            if count != found:
                raise InputError(f"{self.path} declares {count} {what} and lists {found}")
        if not self.starts:
            raise InputError(f"{self.path} has no initial state: none has the label init")
        if (target >= X).any():
            at = int(np.argmax(target >= X))
            raise self._wrong(
                f"the target {target[at]} is none of the {X} states", line[choice[at]]
            )
        total = np.bincount(choice, listed[:, 2], C)
        wrong = np.flatnonzero(~(np.abs(total - 1.0) <= TEXT_TOLERANCE))
        if len(wrong):
            said = f"the probabilities sum to {total[wrong[0]]:.9g}, not 1"
            raise self._wrong(said, line[wrong[0]])
        _, first = np.unique(choice * X + target, return_index=True)
        if len(first) < len(target):
            again = np.setdiff1d(np.arange(len(target)), first)[0]
            said = f"the action lists the target {target[again]} twice"
            raise self._wrong(said, line[choice[again]])
        total[np.abs(total - 1.0) <= ROW_SUM_TOLERANCE] = 1.0
        rewards = np.array([each for _, each in self.states], dtype=np.float64).reshape(X, M)
        pays = np.array(paid, dtype=np.float64).reshape(C, M)
        rows = choice, target, listed[:, 2] / total[choice]
        head = X, self.starts[0], self.names, rewards
        return Model(*head, owner, tuple(actions), pays, line, *rows, self.roles)
