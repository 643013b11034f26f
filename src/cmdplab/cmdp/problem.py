"""The problem: a finite-horizon constrained Markov decision process as a frozen bundle of arrays.

maximise V[r^0] subject to V[r^n] >= b^n for n = 1..N, over policies pi_h(a | x), where V[r] is the
expected sum of r over one episode of H steps from the start state (paper, Section 2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.checks import checked_name
from cmdplab.cmdp.checks import (
    FILED,
    Bundle,
    check_between,
    check_format,
    check_sizes,
    checked_mask,
    checked_start,
    checked_threshold,
    close_rows,
    common_horizon,
    floats,
    kernel_arrays,
    kernel_names,
    kernel_rows,
    stored_kernel,
)
from cmdplab.cmdp.labels import Labels, Scale, checked_labels
from cmdplab.cmdp.stationary import average_problem, discounted_problem
from cmdplab.cmdp.transitions import Sparse, checked_rows
from cmdplab.errors import InputError, naming
from cmdplab.files import read_sealed_npz, write_sealed_npz
from cmdplab.types import Array, Mask, frozen, lock

__all__ = ["CMDP", "Array", "Mask"]

FORMAT = "cmdplab-cmdp-1"
EXTENDED = "cmdplab-cmdp-2"  # with lists, a mask or labels, which older versions cannot read


@display.shown
@frozen
@dataclass(frozen=True, eq=False)
class CMDP(Bundle):
    """A constrained MDP with H steps, X states, A actions and N >= 0 constraints.

    transition : [H, X, A, X], P_h(y | x, a). A stationary [X, A, X] is accepted, stored once and
        seen through a view of shape [H, X, A, X]. Or lists of successors, `transitions.Sparse`, or
        a list of SciPy's sparse matrices [X, X], one for each action, which become such lists.
    reward : [1 + N, H, X, A] in [0, 1]; row 0 is the objective, rows 1..N are the constrained
        utilities. A stationary [1 + N, X, A] is accepted when `horizon` is given.
    threshold : [N]; the value of utility n must reach threshold[n - 1]. Values lie in [0, H]: what
        is below can never bind, and what is above makes the problem infeasible.
    start : the state in which every episode begins.
    horizon : H; needed only when neither the transition nor the reward carries it.
    name : what tables and figures call the problem.
    mask : [X, A] or [H, X, A] of booleans, true where an action may be taken; None where all may.
        What a closed pair would do and earn is never read; it becomes "stay, for nothing".
    labels : names of states, actions, steps and rewards; `Labels()` where nothing is named.

    Everything is checked here, once; the arrays are read-only afterwards.
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
            limits = ", ".join(self._limit(n) for n in range(min(self.constraints, 4)))
            more = ", ..." if self.constraints > 4 else ""
            return title, [*facts, ("in your units", limits + more)]
        return title, facts

    def _limit(self, n: int) -> str:
        """A threshold in the units of the labels: energy <= 15."""
        signal = self.labels.signal(n + 1)
        limit = signal.published(float(self.threshold[n])) + 0.0  # + 0.0: no "-0"
        return f"{display.name(signal.of)} {'<=' if signal.factor < 0.0 else '>='} {limit:.6g}"

    @property
    def table(self) -> Array:
        """[H, X, A, X], P written out; refused where that would be enormous."""
        if not isinstance(self.transition, Sparse):
            return self.transition
        dense = self.transition.dense()
        return np.broadcast_to(dense, (self.horizon, *dense.shape[-3:]))

    @property
    def stationary(self) -> bool:
        """Whether the kernel is stored once for all steps."""
        if isinstance(self.transition, Sparse):
            return self.transition.stationary
        return self.horizon > 1 and self.transition.strides[0] == 0

    @cached_property
    def repeated(self) -> bool:
        """Whether rewards and open actions are the same at every step."""
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
        """Constraints as costs that must stay within budgets: u = 1 - c and b = H - budget.

        reward : [H, X, A], the objective. cost : [N, H, X, A] in [0, 1]. budget : [N]. labels :
        names; where they do not say what rewards count, they do now: costs are told as costs.
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

    def changed(
        self,
        threshold: npt.ArrayLike | None = None,
        reward: npt.ArrayLike | None = None,
        labels: Labels | None = None,
    ) -> CMDP:
        """The same problem with other thresholds [N], rewards [1 + N, H, X, A] or names.

        The kernel is shared: it is neither copied nor checked again.
        """
        other = object.__new__(CMDP)
        vars(other).update(vars(self))
        rewards = self.reward if reward is None else floats("reward", reward)
        if rewards.shape != self.reward.shape:
            raise InputError(f"the rewards have the shape {rewards.shape}, not {self.reward.shape}")
        if reward is not None:
            rewards[:, ~self.opened] = 0.0
            check_between("reward", rewards, 1)
            other.__dict__.pop("repeated", None)
        wanted = self.threshold if threshold is None else threshold
        other._keep(reward=rewards, threshold=checked_threshold(wanted, self.constraints))
        if labels is not None:
            other._keep(
                labels=checked_labels(labels, rewards.shape[2:], self.horizon, len(rewards))
            )
        return other

    discounted = staticmethod(discounted_problem)
    average = staticmethod(average_problem)

    def save(self, path: str | Path) -> None:
        """Write the problem as a compressed .npz (never pickle), whole or not at all."""
        arrays: dict[str, Any] = {"reward": self.reward, "threshold": self.threshold}
        extra: dict[str, Any] = {}
        if isinstance(self.transition, Sparse):
            extra = kernel_arrays(self.transition)
        else:
            arrays |= kernel_arrays(self.transition[0] if self.stationary else self.transition)
        if self.mask is not None:
            extra["mask"] = self.mask
        if self.labels != Labels():
            extra["labels"] = np.array(self.labels.to_json())
        arrays |= {
            "format": np.array(EXTENDED if extra else FORMAT),
            "name": np.array(self.name),
            "start": np.array(self.start),
        }
        write_sealed_npz(path, {**arrays, **extra})

    @classmethod
    def load(cls, path: str | Path) -> CMDP:
        """Read what `save` wrote; anything else gets one sentence."""
        arrays = read_sealed_npz(path, FILED)
        needed = {"reward", "threshold", "start", "name"} | kernel_names(arrays)
        check_format(path, "cmdplab problem", arrays, needed, (FORMAT, EXTENDED))
        start, name = arrays["start"], arrays["name"]
        if name.ndim != 0 or name.dtype.kind != "U":
            raise InputError(f"{path}: name must be one text, not an array of {name.shape}")
        if start.ndim != 0:
            raise InputError(f"{path}: start must be one number, not an array of {start.shape}")
        with naming(path):
            return cls(
                stored_kernel(arrays),
                arrays["reward"],
                arrays["threshold"],
                start.item(),
                name=str(name),
                mask=arrays.get("mask"),
                labels=Labels.from_json(str(arrays.get("labels", "{}"))),
            )


def repeats(reward: Array, mask: Mask | None) -> bool:
    """Whether rewards [1 + N, H, X, A] and a mask [H, X, A] are the same at every step."""
    same = mask is None or bool((mask == mask[:1]).all())
    return same and bool((reward == reward[:, :1]).all())


CLOSED = -1e200  # added to the value of a closed action: no sum of rewards makes up for it


def closed_pairs(mask: Mask | None, shape: tuple[int, ...]) -> Array:
    """[H, X, A]: 0 where an action is open, `CLOSED` where it is not.

    Finite, so that a probability of zero times its logarithm is zero and not undefined.
    """
    return np.zeros(shape) if mask is None else np.where(mask, 0.0, CLOSED)
