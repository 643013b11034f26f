"""The problem: a finite-horizon constrained Markov decision process as a frozen bundle of arrays.

maximise V[r^0] subject to V[r^n] >= b^n for n = 1..N, over policies pi_h(a | x), where V[r] is the
expected sum of r over one episode of H steps from the start state (paper, Section 2).
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab.errors import InputError
from cmdplab.files import written_whole

Array = npt.NDArray[np.float64]

ROW_SUM_TOLERANCE = 1e-8  # a row of probabilities may be off by this much; it is then normalised
FORMAT = "cmdplab-cmdp-1"
LARGEST_FILE = 8 << 30  # bytes that the arrays of one .npz may unpack to


@dataclass(frozen=True, eq=False)
class CMDP:
    """A constrained MDP with H steps, X states, A actions and N >= 0 constraints.

    transition : [H, X, A, X], P_h(y | x, a). A stationary [X, A, X] is accepted, stored once and
        seen through a view of shape [H, X, A, X].
    reward : [1 + N, H, X, A] in [0, 1]; row 0 is the objective, rows 1..N are the constrained
        utilities. A stationary [1 + N, X, A] is accepted when `horizon` is given.
    threshold : [N] in [0, H]; the value of utility n must reach threshold[n - 1].
    start : the state in which every episode begins.
    horizon : H; needed only when neither the transition nor the reward carries it.
    name : what tables and figures call the problem.

    Everything is checked here, once; the arrays are read-only afterwards.
    """

    transition: Array
    reward: Array
    threshold: Array
    start: int = 0
    horizon: int = 0
    name: str = "custom"

    def __post_init__(self) -> None:
        reward = _floats("reward", self.reward)
        transition = _floats("transition", self.transition)
        horizon = _horizon(transition, reward, self.horizon)
        if reward.ndim == 3:
            reward = np.repeat(reward[:, None], horizon, axis=1)
        _check_reward(reward)
        states, actions = reward.shape[2:]
        transition = _checked_kernel(transition, states, actions)
        threshold = _checked_threshold(self.threshold, len(reward) - 1, horizon)
        start = _checked_start(self.start, states)
        for array in (transition, reward, threshold):
            array.flags.writeable = False
        if transition.ndim == 3:
            transition = np.broadcast_to(transition, (horizon, *transition.shape))
        fields = {
            "transition": transition,
            "reward": reward,
            "threshold": threshold,
            "start": start,
            "horizon": horizon,
        }
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    @property
    def states(self) -> int:
        """X, the number of states."""
        return int(self.reward.shape[2])

    @property
    def actions(self) -> int:
        """A, the number of actions."""
        return int(self.reward.shape[3])

    @property
    def constraints(self) -> int:
        """N, the number of constraints."""
        return len(self.reward) - 1

    @property
    def stationary(self) -> bool:
        """Whether the kernel is stored once for all steps."""
        return self.horizon > 1 and self.transition.strides[0] == 0

    @classmethod
    def from_costs(
        cls,
        transition: npt.ArrayLike,
        reward: npt.ArrayLike,
        cost: npt.ArrayLike,
        budget: npt.ArrayLike,
        start: int = 0,
        name: str = "custom",
    ) -> CMDP:
        """Constraints as costs that must stay within budgets: u = 1 - c and b = H - budget.

        reward : [H, X, A], the objective. cost : [N, H, X, A] in [0, 1]. budget : [N] in [0, H].
        """
        objective = _floats("reward", reward)
        costs = _floats("cost", cost)
        if objective.ndim != 3 or costs.ndim != 4 or costs.shape[1:] != objective.shape:
            raise InputError(
                "reward must have the shape [H, X, A] and cost [N, H, X, A]; "
                f"they have {objective.shape} and {costs.shape}"
            )
        _between("cost", costs, 1)
        utilities = np.concatenate([objective[None], 1.0 - costs])
        budgets = np.atleast_1d(_floats("budget", budget))
        horizon = len(objective)
        _between("budget", budgets, horizon)
        threshold = horizon - budgets
        return cls(_floats("transition", transition), utilities, threshold, start, name=name)

    def save(self, path: str | Path) -> None:
        """Write the problem as a compressed .npz (never pickle), whole or not at all."""
        kernel = self.transition[0] if self.stationary else self.transition
        with written_whole(path) as temporary, temporary.open("wb") as stream:
            np.savez_compressed(
                stream,
                format=np.array(FORMAT),
                name=np.array(self.name),
                transition=kernel,
                reward=self.reward,
                threshold=self.threshold,
                start=np.array(self.start),
            )

    @classmethod
    def load(cls, path: str | Path) -> CMDP:
        """Read what `save` wrote; anything else gets one sentence."""
        arrays = read_npz(path)
        missing = {"format", "transition", "reward", "threshold", "start", "name"} - arrays.keys()
        if missing or str(arrays["format"]) != FORMAT:
            what = f"has no array {sorted(missing)[0]!r}" if missing else "has another format"
            raise InputError(f"{path} is not a cmdplab problem: it {what}")
        start, name = arrays["start"], str(arrays["name"])
        if start.ndim != 0:
            raise InputError(f"{path}: start must be one number, not an array of {start.shape}")
        kernel, reward = arrays["transition"], arrays["reward"]
        try:
            return cls(kernel, reward, arrays["threshold"], start.item(), name=name)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None


def read_npz(path: str | Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz from outside: never unpickled, never of absurd size."""
    if Path(path).exists() and not Path(path).is_file():
        raise InputError(f"{path} is not a file")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > LARGEST_FILE:
            raise InputError(f"{path} would unpack to {size} bytes, more than {LARGEST_FILE}")
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files}
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except InputError:
        raise
    except Exception as error:  # zipfile, zlib and numpy each raise kinds of their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path} cannot be read as .npz: {reason}") from None


def _floats(what: str, values: npt.ArrayLike) -> Array:
    """A copy as float64; only real numbers become numbers."""
    try:
        given = np.asarray(values)
        if given.dtype.kind in "biuf" and not isinstance(values, np.ma.MaskedArray):
            return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{what} is not an array of real numbers")


def _horizon(transition: Array, reward: Array, horizon: int) -> int:
    if transition.ndim not in (3, 4):
        raise InputError(
            f"transition must have the shape [H, X, A, X] or [X, A, X], not {transition.shape}"
        )
    if reward.ndim not in (3, 4):
        raise InputError(
            f"reward must have the shape [1 + N, H, X, A] or [1 + N, X, A], not {reward.shape}"
        )
    stated = {reward.shape[1]} if reward.ndim == 4 else set()
    stated |= {len(transition)} if transition.ndim == 4 else set()
    stated |= {horizon} if horizon else set()
    if not isinstance(horizon, int | np.integer) or horizon < 0:
        raise InputError(f"the horizon is {horizon!r}, not a positive whole number")
    if not stated:
        raise InputError("transition and reward are both stationary, so the horizon must be given")
    if len(stated) > 1:
        raise InputError(
            f"transition {transition.shape} and reward {reward.shape} disagree on the horizon"
            + (f" {horizon}" if horizon else "")
        )
    if min(stated) < 1:
        raise InputError(f"the horizon must be at least 1, not {min(stated)}")
    return int(stated.pop())


def _where(array: Array, wrong: npt.NDArray[np.bool_]) -> tuple[str, float]:
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return ", ".join(map(str, index)), float(array[index])


def _between(what: str, array: Array, high: int) -> None:
    wrong = ~((array >= 0.0) & (array <= high))
    if wrong.any():
        index, number = _where(array, wrong)
        raise InputError(f"{what}[{index}] is {number:g}, outside [0, {high}]")


def _check_reward(reward: Array) -> None:
    if min(reward.shape) < 1:
        raise InputError(f"reward has an empty axis: {reward.shape}")
    _between("reward", reward, 1)


def _checked_kernel(kernel: Array, states: int, actions: int) -> Array:
    if kernel.shape[-3:] != (states, actions, states):
        raise InputError(
            f"transition has the shape {kernel.shape}, "
            f"but the reward has {states} states and {actions} actions"
        )
    wrong = ~((kernel >= 0.0) & (kernel <= 1.0 + ROW_SUM_TOLERANCE))
    if wrong.any():
        index, number = _where(kernel, wrong)
        raise InputError(f"transition[{index}] is {number:g}, not a probability")
    total = kernel.sum(axis=-1)
    wrong = ~(np.abs(total - 1.0) <= ROW_SUM_TOLERANCE)
    if wrong.any():
        index, number = _where(total, wrong)
        raise InputError(f"transition[{index}] sums to {number:.9g}, not 1")
    loose = np.abs(total - 1.0) > 1e-12  # leave rows alone that are already as exact as floats get
    kernel[loose] /= total[loose][:, None]
    return kernel


def _checked_threshold(threshold: npt.ArrayLike, constraints: int, horizon: int) -> Array:
    array = np.atleast_1d(_floats("threshold", threshold))
    if array.shape != (constraints,):
        raise InputError(
            f"threshold has the shape {array.shape}, but the reward has {constraints} utilities"
        )
    _between("threshold", array, horizon)
    return array


def _checked_start(start: int, states: int) -> int:
    whole = isinstance(start, int | np.integer) and not isinstance(start, bool)
    if not whole or not 0 <= start < states:
        raise InputError(f"start is {start!r}, but the states are 0..{states - 1}")
    return int(start)
