"""What problems with an end and without one share: sizes, open actions, the kernel, their files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.cmdp.labels import Labels, Scale
from cmdplab.cmdp.transitions import Dense, Kernel, Sparse
from cmdplab.errors import InputError
from cmdplab.types import Array, Mask


class Bundle:
    """The arrays of a problem; [..., X, A] has steps in front where episodes end."""

    transition: Array | Sparse
    reward: Array  # [1 + N, ..., X, A]
    threshold: Array  # [N]
    name: str
    mask: Mask | None  # [..., X, A]
    labels: Labels

    @property
    def states(self) -> int:
        """X, the number of states."""
        return int(self.reward.shape[-2])

    @property
    def actions(self) -> int:
        """A, the number of actions."""
        return int(self.reward.shape[-1])

    @property
    def constraints(self) -> int:
        """N, the number of constraints."""
        return len(self.reward) - 1

    @property
    def units(self) -> tuple[Scale, ...]:
        """[1 + N], what each reward counts, by the labels."""
        return tuple(self.labels.signal(n) for n in range(len(self.reward)))

    @property
    def kernel(self) -> Kernel:
        """P, whichever way it is stored."""
        given = self.transition
        if isinstance(given, Sparse):
            return given
        return Dense(given if given.ndim == 4 else given[None])

    @property
    def opened(self) -> Mask:
        """[H, X, A], or [X, A] without an end: the mask written out."""
        if self.mask is not None:
            return self.mask
        return np.broadcast_to(np.array(True), self.reward.shape[1:])

    def _keep(self, **fields: Any) -> None:
        """Set fields of a frozen problem; its arrays are read-only from here on."""
        for field, value in fields.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, field, value)

    def _told(self, first: tuple[str, str], start: str, kernel: str) -> tuple[str, display.Facts]:
        """The facts of every problem, the first of its own."""
        facts = [
            first,
            ("states", f"{self.states:,}"),
            ("actions", f"{self.actions:,}"),
            ("constraints", f"{self.constraints:,}"),
            ("thresholds", display.numbers(self.threshold)),
            ("start", start),
        ]
        if kernel:
            facts.append(("kernel", kernel))
        if self.mask is not None:
            facts.append(("closed", f"{1.0 - self.mask.mean():.1%} of the actions"))
        return f"{type(self).__name__} {display.name(self.name)}", facts


def kernel_arrays(kernel: Array | Sparse) -> dict[str, npt.NDArray[Any]]:
    """A kernel as a file holds it."""
    if isinstance(kernel, Sparse):
        return {"successor": kernel.successor, "probability": kernel.probability}
    return {"transition": kernel}


def stored_kernel(arrays: Mapping[str, Any]) -> Array | Sparse:
    """The kernel of such arrays."""
    if "successor" in arrays:
        return Sparse(arrays["successor"], arrays["probability"])
    return arrays["transition"]  # type: ignore[no-any-return]


def kernel_names(arrays: Mapping[str, Any]) -> set[str]:
    """What the kernel of a file needs."""
    return {"successor", "probability"} if "successor" in arrays else {"transition"}


def check_format(
    path: object, what: str, arrays: Mapping[str, Any], needed: set[str], formats: tuple[str, ...]
) -> None:
    """Refuse arrays that lack what is needed, or are of another format."""
    missing = {"format", *needed} - arrays.keys()
    if missing or str(arrays["format"]) not in formats:
        wrong = f"has no array {sorted(missing)[0]!r}" if missing else "has another format"
        raise InputError(f"{path} is not a {what}: it {wrong}")
