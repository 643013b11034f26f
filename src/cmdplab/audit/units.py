"""What a statement is about: runs of one instance are alike, so that instances are the samples.

Seeds of one instance share its kernel and its rewards. Taken as independent runs, ten instances
with five seeds each would give intervals for fifty samples where there are ten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cmdplab.types import Array


class Units(NamedTuple):
    """The independent samples of a group: its instances if it has several, else its seeds."""

    instance: list[int]  # of each run, numbered in order of appearance
    noun: str  # "instances" or "seeds"

    @property
    def samples(self) -> int:
        """How many samples there are."""
        return len(set(self._places()))

    @property
    def over(self) -> str:
        """In words: what medians, intervals, bands and exponents are taken over."""
        if self.noun == "instances":
            return f"{self.samples} instances"
        return "one run" if self.samples == 1 else f"{self.samples} seeds of one instance"

    def reduced(self, values: Array) -> Array:
        """[runs, ...] to [samples, ...]: the median over the seeds of each instance."""
        return self._each(values, np.median)

    def worst(self, values: Array) -> Array:
        """[runs, ...] to [samples, ...]: the maximum over the seeds of each instance."""
        return self._each(values, np.max)

    def _places(self) -> list[int]:
        return self.instance if self.noun == "instances" else list(range(len(self.instance)))

    def _each(self, values: Array, statistic: Callable[..., Array]) -> Array:
        places = np.array(self._places())
        if len(set(self._places())) == len(places):
            return np.array(values, dtype=np.float64)  # of one number each
        return np.array([statistic(values[places == unit], axis=0) for unit in np.unique(places)])


def units_of(instances: Sequence[str]) -> Units:
    """From the name of the instance of each run."""
    numbers = {name: n for n, name in enumerate(dict.fromkeys(instances))}
    noun = "instances" if len(numbers) > 1 else "seeds"
    return Units([numbers[name] for name in instances], noun)
