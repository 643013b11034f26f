"""A stationary problem as a DRN file for Storm, with its roles in a comment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cmdplab.cmdp.problem import CMDP
from cmdplab.files.write import written_whole
from cmdplab.formats.assembling import stationary_tables
from cmdplab.formats.drn_lines import ROLES
from cmdplab.formats.roles import Roles
from cmdplab.types import Array, Mask


def write_drn(problem: CMDP, path: str | Path) -> None:
    """Write the problem; `read_drn` of the file gives it back, to the last bit.

    The reward models are `objective`, `utility_1`, ..., all paid by actions. Horizon, thresholds
    and name, for which DRN has no place, stand in a comment that Storm skips. A pair that is
    closed is not listed; last actions that are closed in every state are lost.
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
