"""CMDP with a finite horizon as a frozen class of arrays.

    maximise V[r^0] subject to V[r^n] >= b^n for n = 1..N, over policies pi_h(a | x)

V[r] is the expected sum of r over one episode of H steps from the start state (paper, Section 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.checks import checked_name
from cmdplab.cmdp.bundle import Bundle, filed, kernel_arrays
from cmdplab.cmdp.checks import (
    check_between,
    check_sizes,
    checked_mask,
    checked_start,
    checked_threshold,
    close_rows,
    common_horizon,
    floats,
    kernel_rows,
)
from cmdplab.cmdp.labels import Labels, Scale, checked_labels
from cmdplab.cmdp.stationary import average_problem, discounted_problem
from cmdplab.cmdp.transitions import Sparse, checked_rows
from cmdplab.errors import InputError, naming
from cmdplab.types import Array, Mask, frozen, lock

__all__ = ["CMDP", "Array", "Mask"]

FORMAT = "cmdplab-cmdp-1"
EXTENDED = "cmdplab-cmdp-2"  # with lists, a mask or labels, which older versions cannot read


@display.shown
@frozen
@dataclass(frozen=True, eq=False)
class CMDP(Bundle):
    """Constrained MDP with H steps, X states, A actions and N >= 0 constraints.

    transition : [H, X, A, X], P_h(y | x, a). A stationary [X, A, X] is stored once, and the
    attribute is     a view of shape [H, X, A, X]. Lists of successors, `transitions.Sparse`, are
    accepted. A list of     SciPy's sparse matrices [X, X], one for each action, becomes such lists.
    reward : [1 + N, H, X, A] in [0, 1]; row 0 is the objective, rows 1..N are the constrained
    utilities. A stationary [1 + N, X, A] is accepted when `horizon` is given. threshold : [N]; the
    value of utility n must reach threshold[n - 1]. Values lie in [0, H]: a     negative threshold
    never binds, and one above H makes the problem infeasible. start : the state in which every
    episode begins. horizon : H; needed only if neither the transition nor the reward has an axis of
    steps. name : the name in tables and figures. mask : [X, A] or [H, X, A] of booleans, true for
    actions that may be taken; None: all may.     The given rows of a closed pair are not read. The
    pair stays in its state with reward 0. labels : names of states, actions, steps and rewards.

    The arrays are checked here, once, and are read-only afterwards.
    """

    transition: Array | Sparse
    reward: Array
    threshold: Array
    start: int = 0
    horizon: int = 0
    name: str = "custom"
    mask: Mask | None = None
    labels: Labels = Labels()

    def __post_init__(self) -> None:
        reward = floats("reward", self.reward)
        kernel = kernel_rows(self.transition, self.mask)
        horizon = common_horizon(kernel, reward, self.horizon)
        if reward.ndim == 3:
            reward = np.repeat(reward[:, None], horizon, axis=1)
            if self.mask is None or np.ndim(self.mask) < 3:
                self.__dict__["repeated"] = True
        if min(reward.shape) < 1:
            raise InputError(f"reward has an empty axis: {reward.shape}")
        mask = checked_mask(self.mask, reward.shape[1:])
        check_sizes(kernel, reward)
        if not isinstance(kernel, Sparse) and kernel.ndim == 4 and kernel.strides[0] == 0:
            kernel = kernel[0].copy()
        if mask is not None:
            reward[:, ~mask] = 0.0
            if not isinstance(kernel, Sparse):
                close_rows(kernel, mask)
        check_between("reward", reward, 1)
        if not isinstance(kernel, Sparse):
            kernel = checked_rows(kernel)
            lock(kernel)
            if kernel.ndim == 3:
                kernel = np.broadcast_to(kernel, (horizon, *kernel.shape))
        self._keep(
            transition=kernel,
            reward=reward,
            threshold=checked_threshold(self.threshold, len(reward) - 1),
            start=checked_start(self.start, reward.shape[2]),
            horizon=horizon,
            mask=mask,
            labels=checked_labels(self.labels, reward.shape[2:], horizon, len(reward)),
            name=checked_name("the name", self.name),
        )

    def _facts(self) -> tuple[str, display.Facts]:
        how = "stationary" if self.stationary or self.horizon == 1 else "changes with the step"
        listed = ", lists of successors" if isinstance(self.transition, Sparse) else ""
        start = display.name(self.labels.state(self.start))
        title, facts = self._told(("horizon", f"{self.horizon:,}"), start, how + listed)
        if self.labels.signals and self.constraints:
            limits = zip(
                self.units[1:], self.units.thresholds(self.threshold.tolist()), strict=True
            )
            told = [  # + 0.0: no "-0"
                f"{display.name(scale.of)} {'<=' if scale.cost else '>='} {limit + 0.0:.6g}"
                for scale, limit in limits
            ]
            more = ", ..." if self.constraints > 4 else ""
            return title, [*facts, ("in your units", ", ".join(told[:4]) + more)]
        return title, facts

    @property
    def table(self) -> Array:
        """Kernel as a table [H, X, A, X]. More than `LARGEST_DENSE` numbers are refused."""
        if not isinstance(self.transition, Sparse):
            return self.transition
        dense = self.transition.dense()
        return np.broadcast_to(dense, (self.horizon, *dense.shape[-3:]))

    @property
    def stationary(self) -> bool:
        """True if the kernel is stored once for all steps."""
        if isinstance(self.transition, Sparse):
            return self.transition.stationary
        return self.horizon > 1 and self.transition.strides[0] == 0

    @cached_property
    def repeated(self) -> bool:
        """True if rewards and open actions are equal at all steps."""
        return repeats(self.reward, self.mask)

    @classmethod
    def from_costs(
        cls,
        transition: npt.ArrayLike | Sparse,
        reward: npt.ArrayLike,
        cost: npt.ArrayLike,
        budget: npt.ArrayLike,
        start: int = 0,
        name: str = "custom",
        mask: Mask | None = None,
        labels: Labels | None = None,
    ) -> CMDP:
        """Return a problem whose costs must not exceed budgets: u = 1 - c and b = H - budget.

        reward : [H, X, A], the objective. cost : [N, H, X, A] in [0, 1]. budget : [N].
        labels : names. If they name no signals, the costs get default names and are shown as costs.
        The other arguments are fields of `CMDP`.
        """
        objective = floats("reward", reward)
        costs = floats("cost", cost)
        if objective.ndim != 3 or costs.ndim != 4 or costs.shape[1:] != objective.shape:
            raise InputError(
                "reward must have the shape [H, X, A] and cost [N, H, X, A]; "
                f"they have {objective.shape} and {costs.shape}"
            )
        check_between("cost", costs, 1)
        utilities = np.concatenate([objective[None], 1.0 - costs])
        horizon = len(objective)
        threshold = horizon - np.atleast_1d(floats("budget", budget))
        if labels is not None and not labels.signals:
            counted = [Scale(f"cost {n + 1}", -1.0, float(horizon)) for n in range(len(costs))]
            labels = replace(labels, signals=(Scale("objective"), *counted))
        given = (transition, utilities, threshold, start)
        return cls(*given, name=name, mask=mask, labels=labels or Labels())  # type: ignore[arg-type]

    discounted = staticmethod(discounted_problem)
    average = staticmethod(average_problem)

    @staticmethod
    def _check_rewards(reward: Array) -> None:
        check_between("reward", reward, 1)

    def _arrays(self) -> dict[str, Any]:
        extra: dict[str, Any] = {}
        kernel = self.transition
        if isinstance(kernel, Sparse):
            extra = kernel_arrays(kernel)
        if self.mask is not None:
            extra["mask"] = self.mask
        if self.labels != Labels():
            extra["labels"] = np.array(self.labels.to_json())
        arrays: dict[str, Any] = {"reward": self.reward, "threshold": self.threshold}
        if not isinstance(kernel, Sparse):
            arrays |= kernel_arrays(kernel[0] if self.stationary else kernel)
        format_ = np.array(EXTENDED if extra else FORMAT)
        head = {"format": format_, "name": np.array(self.name), "start": np.array(self.start)}
        return {**arrays, **head, **extra}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], path: str | Path) -> CMDP:
        """Return the problem of the arrays in a file. path : the file, for errors."""
        fields = filed(path, "cmdplab problem", arrays, (FORMAT, EXTENDED))
        start = arrays["start"]
        if start.ndim != 0:
            raise InputError(f"{path}: start must be one number, not an array of {start.shape}")
        with naming(path):
            return cls(start=start.item(), **fields)


def repeats(reward: Array, mask: Mask | None) -> bool:
    """Return True if rewards [1 + N, H, X, A] and a mask [H, X, A] are equal at all steps."""
    same = mask is None or bool((mask == mask[:1]).all())
    return same and bool((reward == reward[:, :1]).all())


CLOSED = -1e200  # added to the value of a closed action: no sum of rewards outweighs it


def closed_pairs(mask: Mask | None, shape: tuple[int, ...]) -> Array:
    """Return an array [H, X, A] from a mask: 0 for open actions, `CLOSED` for others.

    shape : [H, X, A], for a mask of None. `CLOSED` is finite, so that its product with a
    probability of zero is zero.
    """
    return np.zeros(shape) if mask is None else np.where(mask, 0.0, CLOSED)
