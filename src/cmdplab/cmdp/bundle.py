"""The common part of problems with and without an end: sizes, kernel, changes and files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.cmdp.checks import checked_threshold, floats
from cmdplab.cmdp.labels import Labels, Scales, checked_labels
from cmdplab.cmdp.transitions import Dense, Kernel, Sparse
from cmdplab.errors import InputError
from cmdplab.files import read_sealed_npz, write_sealed_npz
from cmdplab.types import Array, Mask, lock


def check_problem(given: object) -> None:
    """Refuse an object that is no problem."""
    if not isinstance(given, Bundle):
        raise InputError(f"the problem is {type(given).__name__}, not a CMDP")


class Bundle:
    """Arrays of a problem. If episodes end, [..., X, A] begins with an axis of steps."""

    transition: Array | Sparse
    reward: Array  # [1 + N, ..., X, A]
    threshold: Array  # [N]
    name: str
    mask: Mask | None  # [..., X, A]
    labels: Labels

    @property
    def states(self) -> int:
        """Return X."""
        return int(self.reward.shape[-2])

    @property
    def actions(self) -> int:
        """Return A."""
        return int(self.reward.shape[-1])

    @property
    def constraints(self) -> int:
        """Return N."""
        return len(self.reward) - 1

    @property
    def units(self) -> Scales:
        """Return the units of each reward, [1 + N], which convert values into them."""
        return Scales(self.labels.signal(n) for n in range(len(self.reward)))

    @cached_property
    def kernel(self) -> Kernel:
        """Return P as a `Kernel`, stored as a table or as lists."""
        given = self.transition
        if isinstance(given, Sparse):
            return given
        return Dense(given if given.ndim == 4 else given[None])

    @property
    def opened(self) -> Mask:
        """Return the open actions as booleans: [H, X, A], or [X, A] without an end."""
        if self.mask is not None:
            return self.mask
        return np.broadcast_to(np.array(True), self.reward.shape[1:])

    @cached_property
    def largest(self) -> Array:
        """Return the largest absolute reward of each signal, [1 + N]."""
        rewards = self.reward[:, :1] if getattr(self, "repeated", False) else self.reward
        rewards = rewards.reshape(len(rewards), -1)
        return np.asarray(np.maximum(rewards.max(axis=1), -rewards.min(axis=1)))

    def changed(
        self,
        threshold: npt.ArrayLike | None = None,
        reward: npt.ArrayLike | None = None,
        labels: Labels | None = None,
    ) -> Self:
        """Return the problem with other thresholds [N], rewards (of the same shape) or names.

        The kernel is shared: it is neither copied nor checked again.
        """
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        rewards, steps = self.reward, getattr(self, "horizon", 0)
        if reward is not None:
            rewards = floats("reward", reward)
            if rewards.shape != self.reward.shape:
                raise InputError(
                    f"the rewards have the shape {rewards.shape}, not {self.reward.shape}"
                )
            rewards[:, ~self.opened] = 0.0
            self._check_rewards(rewards)
            for derived in ("repeated", "largest"):
                vars(other).pop(derived, None)
            other._keep(reward=rewards)
        if threshold is not None:
            other._keep(threshold=checked_threshold(threshold, self.constraints))
        if labels is not None:
            other._keep(labels=checked_labels(labels, rewards.shape[-2:], steps, len(rewards)))
        return other

    @staticmethod
    def _check_rewards(reward: Array) -> None:
        """Refuse rewards that a problem of this kind cannot have."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the problem as a compressed .npz (never pickle), whole or not at all."""
        write_sealed_npz(path, self._arrays())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a problem that `save` wrote; refuse any other file."""
        return cls.from_arrays(read_sealed_npz(path, FILED), path)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], path: str | Path) -> Self:
        """Return the problem whose arrays were read from the file `path`."""
        raise NotImplementedError

    def _arrays(self) -> dict[str, Any]:
        raise NotImplementedError

    def _keep(self, **fields: Any) -> None:
        """Set fields of a frozen problem; its arrays are read-only from here on."""
        lock(fields)
        vars(self).update(fields)

    def _told(self, first: tuple[str, str], start: str, kernel: str) -> tuple[str, display.Facts]:
        """Return the title and the facts that problems of both kinds show."""
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


# The arrays of a problem's file, with an end or without.
_KERNEL = ("transition", "successor", "probability")
FILED = ("format", "name", "start", "reward", "threshold", "mask", "labels", "discount", *_KERNEL)


def kernel_arrays(kernel: Array | Sparse) -> dict[str, npt.NDArray[Any]]:
    """Return the named arrays of a file with this kernel."""
    if isinstance(kernel, Sparse):
        return {"successor": kernel.successor, "probability": kernel.probability}
    return {"transition": kernel}


def filed(
    path: object, what: str, arrays: Mapping[str, Any], formats: tuple[str, ...], *more: str
) -> dict[str, Any]:
    """Return the fields that problems with and without an end share, from the arrays of a file.

    what, formats : the kind of file in an error, and its accepted formats.
    more : further arrays that the file must have. A file that lacks an array is refused.
    """
    kernel = ("successor", "probability") if "successor" in arrays else ("transition",)
    check_format(
        path, what, arrays, {"reward", "threshold", "start", "name", *kernel, *more}, formats
    )
    name = arrays["name"]
    if name.ndim != 0 or name.dtype.kind != "U":
        raise InputError(f"{path}: name must be one text, not an array of {name.shape}")
    lists = len(kernel) == 2
    return {
        "transition": Sparse(*map(arrays.get, kernel)) if lists else arrays["transition"],  # type: ignore[arg-type]
        "reward": arrays["reward"],
        "threshold": arrays["threshold"],
        "name": str(name),
        "mask": arrays.get("mask"),
        "labels": Labels.from_json(str(arrays.get("labels", "{}"))),
    }


def check_format(
    path: object, what: str, arrays: Mapping[str, Any], needed: set[str], formats: tuple[str, ...]
) -> None:
    """Refuse arrays of a file that lack a needed one or have none of the accepted formats.

    what : the kind of file, in the error.
    """
    missing = {"format", *needed} - arrays.keys()
    if missing or str(arrays["format"]) not in formats:
        wrong = f"has no array {sorted(missing)[0]!r}" if missing else "has another format"
        raise InputError(f"{path} is not a {what}: it {wrong}")
