"""Advice on an algorithm for a first try, by the sizes of the problem and the need for safety.

The rules rest on `benchmarks/advice.py`, whose table is in docs/which-algorithm.md: seven small
environments, a few thousand episodes, two seeds. They guarantee nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from cmdplab import display
from cmdplab.checks import whole_horizon, whole_number
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.live.checks import LARGEST
from cmdplab.live.environment import own_problem
from cmdplab.live.spaces import Discretiser, Spaces

FIRST = "UOpt-RPGPD"  # the best data at the lowest price in most of the table
LONG = 50  # steps from which a plan needs the states that only luck reaches
IN_TABLE = (
    "in the table of docs/which-algorithm.md its data gave plans about as good as any other's, "
    "and an episode takes less time than a planner's"
)
SAFE = (
    "no episode may break a limit: only OptPress-LP and DOPE guarantee that, and begin "
    "with a baseline= that is certified",
    "at the scales of the proof they play the baseline for very long; smaller scales are "
    "faster and promise nothing",
)


class Sizes(NamedTuple):
    """Sizes of a problem or environment, on which the advice depends."""

    states: int
    actions: int
    horizon: int
    constraints: int
    known: bool  # True if the kernel is known


@display.shown
class Advice(NamedTuple):
    """Advised algorithm for a first try, with the reasons and further remarks."""

    algorithm: str
    because: tuple[str, ...]
    besides: tuple[str, ...]
    sizes: Sizes

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("because", each) for each in self.because]
        return f"Advice: {self.algorithm}", facts + [("besides", each) for each in self.besides]

    def __str__(self) -> str:
        return "\n  ".join([self.algorithm, *self.because, *self.besides])


def advise(
    target: Any,
    *,
    horizon: int | None = None,
    constraints: int = 1,
    episodes: int | None = None,
    safe: bool = False,
    discretise: Discretiser | None = None,
) -> Advice:
    """Return advice on the algorithm for `target`, a problem or a Gymnasium environment.

    horizon, constraints, discretise : for environments that lack them. episodes : the planned
    number. safe : True if no episode may break a limit while learning.
    """
    if episodes is not None:
        whole_number("episodes", episodes, least=1)
    return advised(sizes_of(target, horizon, constraints, discretise), episodes, safe)


def advised(sizes: Sizes, episodes: int | None, safe: bool) -> Advice:
    """Return the advice for these sizes. For `episodes` and `safe` see `advise`."""
    because, besides = [IN_TABLE], list[str]()
    if sizes.horizon >= LONG:
        because.append(
            f"with {sizes.horizon} steps its last policy will be far from good: rely on the plan, "
            "learned.policy"
        )
    pairs = sizes.states * sizes.actions
    if sizes.known:
        besides.append(
            "the kernel is known: cmdplab solve gives the optimum, learning a study of it"
        )
    if episodes is not None and pairs * 10 > episodes * sizes.horizon:
        besides.append(
            f"{pairs:,} pairs are too many for {episodes:,} episodes of {sizes.horizon} steps: "
            "most will be tried a few times or never"
        )
    if (entries := float(sizes.horizon) * pairs) > LARGEST:
        besides.append(
            f"a policy of {entries:.1e} numbers is more than can be learned, {LARGEST:.1e}: "
            "take a shorter horizon or coarser states"
        )
    if sizes.constraints > 1:
        besides.append(
            f"{sizes.constraints} constraints: the table has one; margins (learned.plan(margin=)) "
            "help where several are tight"
        )
    name, why = ("OptPress-LP", SAFE) if safe else (FIRST, tuple(because))
    return Advice(name, why, tuple(besides), sizes)


def sizes_of(
    target: Any, horizon: int | None, constraints: int, discretise: Discretiser | None
) -> Sizes:
    """Return the sizes of `target`, a problem or an environment, which is not played."""
    known = isinstance(target, CMDP)
    for name in () if known else ("observation_space", "action_space"):
        if not hasattr(target, name):
            raise InputError(f"{type(target).__name__} is neither a problem nor an environment")
    own = target if isinstance(target, CMDP) else own_problem(target)
    if own is not None and (known or horizon is None):
        return Sizes(own.states, own.actions, own.horizon, own.constraints, known)
    limit = getattr(getattr(target, "spec", None), "max_episode_steps", None)
    steps = whole_horizon(limit if horizon is None else horizon)
    spaces = Spaces.of(target, discretise)
    number = whole_number("constraints", constraints, least=1)
    return Sizes(spaces.states, spaces.actions, steps, number, known=False)
