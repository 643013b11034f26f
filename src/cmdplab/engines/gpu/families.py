"""The list of the families of algorithms that the GPU engine supports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.families.triple_q import TripleQ
from cmdplab.algorithms.row import Row
from cmdplab.engines.gpu import arrays, triple_q
from cmdplab.engines.gpu.layout import check_form, form_of
from cmdplab.engines.gpu.primal_dual import PrimalDualPlayer
from cmdplab.types import Array, Indices


class Player(Protocol):
    """Runs of one family, side by side on the card, and the kernel that plays them.

    B runs play E episodes. The kernel takes `fixed`, the schedules, `drawn`, the number of episodes
    that each run has played, and `learners`. It writes the returns [B, E, 1 + N] and multipliers
    [B, E, N'], where N' = max(N, 1).
    """

    kernel: Any
    fixed: Any  # arrays on the card: problems, tasks and algorithms
    drawn: Any  # the schedule index of each run, and its keys of random numbers
    learners: Any  # the states of the runs, which the kernel changes

    def schedules(self, done: Indices, episodes: int) -> Array:
        """Return schedules [D, E, ...] of D distinct rows for E more episodes after `done` [B]."""
        ...

    def states(self, runs: slice, episode: int) -> list[Any]:
        """Return the states of a slice of the runs after `episode` episodes, in natural axes."""
        ...


class CardFamily(NamedTuple):
    """Functions that lay out, check and play the algorithms of one family on the card."""

    form: Callable[[tuple[int, int, int, int]], Any]  # the layout for rewards [1 + N, H, X, A]
    check: Callable[[Any, int], None]  # refuses a form that no block holds, by bytes of a number
    player: Callable[..., Player]
    run_bytes: Callable[[Any, int], int]  # by form and bytes of a number
    world_bytes: Callable[[Any, int], int]  # likewise, for one problem
    precisions: tuple[str, ...]


CARD_FAMILIES: dict[type[Row], CardFamily] = {
    PrimalDual: CardFamily(
        form_of,
        check_form,
        PrimalDualPlayer,
        arrays.run_bytes,
        arrays.world_bytes,
        ("float64", "float32"),
    ),
    TripleQ: CardFamily(
        triple_q.triple_q_form,
        check_form,
        triple_q.TripleQPlayer,
        triple_q.run_bytes,
        triple_q.world_bytes,
        ("float64",),
    ),
}
