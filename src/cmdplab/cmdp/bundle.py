"""Common base of problems with and without an end: sizes, kernel, changes and files."""

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
    """Refuse an object that is not a problem."""
    if not isinstance(given, Bundle):
        raise InputError(f"the problem is {type(given).__name__}, not a CMDP")


class Bundle:
    """Base class of problems. If episodes end, arrays [..., X, A] have an axis of H steps."""

    transition: Array | Sparse
    reward: Array  # [1 + N, ..., X, A]
    threshold: Array  # [N]
    name: str
    mask: Mask | None  # [..., X, A]
    labels: Labels

    @property
    def states(self) -> int:
        """Number of states, X."""
        return int(self.reward.shape[-2])

    @property
    def actions(self) -> int:
        """Number of actions, A."""
        return int(self.reward.shape[-1])

    @property
    def constraints(self) -> int:
        """Number of constraints, N."""
        return len(self.reward) - 1

    @property
    def units(self) -> Scales:
        """Units of the rewards, [1 + N], which convert values into the units of the source."""
        return Scales(self.labels.signal(n) for n in range(len(self.reward)))

    @cached_property
    def kernel(self) -> Kernel:
        """Kernel P as a `Kernel`, which is a table or lists of successors."""
        given = self.transition
        if isinstance(given, Sparse):
            return given
        return Dense(given if given.ndim == 4 else given[None])

    @property
    def opened(self) -> Mask:
        """Open actions as booleans: [H, X, A], or [X, A] without an end."""
        if self.mask is not None:
            return self.mask
        return np.broadcast_to(np.array(True), self.reward.shape[1:])

    @cached_property
    def largest(self) -> Array:
        """Largest absolute value of each reward, [1 + N]."""
        rewards = self.reward[:, :1] if getattr(self, "repeated", False) else self.reward
        rewards = rewards.reshape(len(rewards), -1)
        return np.asarray(np.maximum(rewards.max(axis=1), -rewards.min(axis=1)))

    def changed(
        self,
        threshold: npt.ArrayLike | None = None,
        reward: npt.ArrayLike | None = None,
        labels: Labels | None = None,
    ) -> Self:
        """Return the problem with other thresholds [N], rewards (of equal shape) or labels.

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
        """Refuse rewards outside the range that the class allows."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write the problem to a compressed .npz file, atomically and without pickle."""
        write_sealed_npz(path, self._arrays())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a problem from a file of `save`. Refuse any other file."""
        return cls.from_arrays(read_sealed_npz(path, FILED), path)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], path: str | Path) -> Self:
        """Return the problem of the arrays in a file. path : the file, for errors."""
        raise NotImplementedError

    def _arrays(self) -> dict[str, Any]:
        raise NotImplementedError

    def _keep(self, **fields: Any) -> None:
        """Set fields of a frozen problem, and make their arrays read-only."""
        lock(fields)
        vars(self).update(fields)

    def _told(self, first: tuple[str, str], start: str, kernel: str) -> tuple[str, display.Facts]:
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
    """Return the arrays by name with which a file stores a kernel."""
    if isinstance(kernel, Sparse):
        return {"successor": kernel.successor, "probability": kernel.probability}
    return {"transition": kernel}


def filed(
    path: object, what: str, arrays: Mapping[str, Any], formats: tuple[str, ...], *more: str
) -> dict[str, Any]:
    """Return the fields that all problems share, by name, from the arrays of a file.

    path, what, formats : the file, its kind and its accepted formats. more : names of further
    arrays that the file must have. A file that lacks an array is refused.
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
    """Refuse arrays of a file that lack a needed name or have none of the accepted formats.

    path, what : the file and its kind, for errors.
    """
    missing = {"format", *needed} - arrays.keys()
    if missing or str(arrays["format"]) not in formats:
        wrong = f"has no array {sorted(missing)[0]!r}" if missing else "has another format"
        raise InputError(f"{path} is not a {what}: it {wrong}")
