"""Reader and writer of DRN files, the explicit models of the model checker Storm.

    @type: MDP
    @reward_models
    gold attacks
    @nr_states
    2
    @nr_choices
    3
    @model
    state 0 [0, 0] init
        action dig [0.5, 0]
            0 : 0.9
            1 : 0.1
    ...

The reward of a step is that of its state plus that of its action. Deterministic and continuous-time
models, observations, parameters and intervals are refused, with their line. If all names of actions
are numbers, they are the numbers of the actions. Otherwise the actions of a state are numbered in
the order of the file. Lines that begin with // are comments. A line that begins with
`// cmdplab` holds `Roles`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError, naming, printable
from cmdplab.files import read_text
from cmdplab.files.write import written_whole
from cmdplab.formats.assemble import Listed, Problem, Roles, Signal, problem_of, stationary_tables
from cmdplab.formats.drn_lines import ROLES, Model, Parser
from cmdplab.formats.kernels import LARGEST, Transitions, stored
from cmdplab.types import Array, Indices, Mask


def parse_drn(path: str | Path) -> Model:
    """Return the model of a DRN file. All checks that need no roles are made."""
    return Parser(str(path), read_text(path).split("\n")).model()


def read_drn(path: str | Path, roles: Roles | None = None) -> Problem:
    """Return the problem of a DRN file. roles : the purpose of its reward models.

    By default the roles are those in the file. The problem is a `CMDP` if they have a horizon, else
    a `StationaryCMDP`.
    """
    model = parse_drn(path)
    roles = model.roles if roles is None else roles
    if roles is None:
        names = ", ".join(model.names) or "none"
        raise InputError(f"{path}: say which reward model is the objective (it has {names})")
    given = _listed(model, roles, roles.name or printable(Path(path).stem), str(path))
    with naming(path):
        return problem_of(given, roles.judged, model.start)


def _listed(model: Model, roles: Roles, name: str, path: str) -> Listed:
    column = _columns(model)
    actions = int(column.max()) + 1
    if model.states * actions > LARGEST:
        raise InputError(f"{path}: {model.states} states with {actions} actions are too many")
    mask = np.zeros((model.states, actions), dtype=np.bool_)
    mask[model.owner, column] = True

    def signals(limits: Mapping[str, float], cost: bool = False) -> Iterator[Signal]:
        for each, limit in limits.items():
            if each not in model.names:
                known = ", ".join(model.names) or "none"
                raise InputError(f"{path} has no reward model {each!r}; it has {known}")
            n, table = model.names.index(each), np.zeros(mask.shape)
            paid = model.state_reward[model.owner, n] + model.choice_reward[:, n]
            table[model.owner, column] = paid
            yield Signal(each, table, float(limit), cost)

    pair = model.owner[model.choice], column[model.choice]
    kernel = stored(Transitions(*pair, model.target, model.probability), mask)
    every = (*signals({roles.objective: 0.0}), *signals(roles.utilities))
    return Listed(kernel, mask, (*every, *signals(roles.costs, cost=True)), name=name)


def _columns(model: Model) -> Indices:
    first = np.searchsorted(model.owner, np.arange(model.states))
    position = np.arange(len(model.owner)) - first[model.owner]
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in model.action):
        return position
    number = np.array([int(each) for each in model.action], dtype=np.int64)
    distinct = len(np.unique(model.owner * (number.max() + 1) + number)) == len(number)
    return number if distinct and number.max() < max(len(number), 1000) else position


def write_drn(problem: CMDP, path: str | Path) -> None:
    """Write a problem as a DRN file. `read_drn` returns it again, to the last bit.

    The reward models are `objective`, `utility_1`, ..., all paid by actions. A comment holds
    horizon, thresholds and name. Closed pairs are not listed. The last actions are lost if they are
    closed in every state.
    """
    rewards, opened = stationary_tables(problem, "DRN")
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in _lines(problem, rewards, opened))


def _lines(problem: CMDP, rewards: Array, opened: Mask) -> Iterator[str]:
    names = ["objective", *(f"utility_{n + 1}" for n in range(problem.constraints))]
    thresholds = dict(zip(names[1:], problem.threshold.tolist(), strict=True))
    roles = Roles(names[0], problem.horizon, thresholds, {}, problem.name)
    yield f"{ROLES}{roles.to_json()}"
    yield from ("@type: MDP", "@parameters", "", "@reward_models", " ".join(names))
    yield from ("@nr_states", str(problem.states), "@nr_choices", str(int(opened.sum())), "@model")
    nothing = ", ".join("0" for _ in names)
    for x in range(problem.states):
        yield f"state {x} [{nothing}]" + (" init" if x == problem.start else "")
        for a in range(problem.actions):
            if opened[x, a]:
                paid = ", ".join(repr(float(each)) for each in rewards[:, x, a])
                yield f"\taction {a} [{paid}]"
                successors = zip(*problem.kernel.successors(0, x, a), strict=True)
                yield from (f"\t\t{int(y)} : {float(p)!r}" for y, p in successors)
