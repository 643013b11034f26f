"""Inputs of a learner about a problem, and the safe policy that some learners need."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.checks import checked_policy
from cmdplab.cmdp.problem import CMDP, closed_pairs
from cmdplab.cmdp.transitions import Kernel, Sparse
from cmdplab.errors import InputError
from cmdplab.types import Array, Mask

# Feedback on rewards. known: their means from the first. bernoulli: samples of 0 and 1 with those
# means. bounded: samples in [0, 1] from outside, which on an engine are the means themselves.
Feedback = Literal["known", "bernoulli", "bounded"]
FEEDBACK: tuple[Feedback, ...] = ("known", "bernoulli", "bounded")


class Baseline(NamedTuple):
    """A policy that is known to meet every threshold, with its exact returns."""

    policy: Array  # [H, X, A]
    returns: Array  # [1 + N]


class Task(NamedTuple):
    """Inputs of a learner: all data but the kernel, which few know (the setting `kernel`).

    If rewards are observed, `reward` gives a learner no more than its shape. `slater_gap` is an
    input of the algorithms that clip or scale by it. `baseline` is an input of the algorithms
    that claim never to violate.
    """

    reward: Array  # [1 + N, H, X, A]
    threshold: Array  # [N]
    start: int
    slater_gap: float  # infinite without a constraint
    baseline: Baseline | None = None
    mask: Mask | None = None  # [H, X, A], true if an action may be taken; None: everywhere
    feedback: Feedback = "known"
    support: Mask | None = None  # [X, A, X], true if a state can follow; None: unknown
    kernel: Kernel | None = None  # None: unknown

    @classmethod
    def of(
        cls,
        problem: CMDP,
        slater_gap: float | None,
        baseline: Baseline | None = None,
        feedback: Feedback = "known",
        support: Mask | None = None,
    ) -> Task:
        """Return the task of a problem. Of its kernel, the task contains at most the `support`.

        `slater_gap` is that of the problem's `Solution`: None without a constraint.
        """
        told = (problem.reward, problem.threshold, problem.start, told_gap(slater_gap))
        return cls(*told, baseline, problem.mask, feedback, support)

    def known_rows(self, successors: int | None) -> Array | None:
        """Return P [H, X, A, X], or [H, X, A, S] as lists; None if the task has no kernel.

        `successors` is S of lists.
        """
        H = self.reward.shape[1]
        if self.kernel is None:
            return None
        if not isinstance(self.kernel, Sparse):
            rows = self.kernel.table
        else:
            rows = self.kernel.probability if successors else self.kernel.dense()
        return np.array(np.broadcast_to(rows, (H, *rows.shape[-3:])))

    @property
    def observed(self) -> bool:
        """Return True if rewards are learnt from samples."""
        return self.feedback != "known"

    @property
    def spread(self) -> float:
        """Return the noise of the samples that an engine draws: see `equations.reward_sample`."""
        return 1.0 if self.feedback == "bernoulli" else 0.0

    @property
    def no_samples(self) -> Array:
        """Return [1 + N, H, X, A], zero sums of samples; [0, H, X, A] if rewards are known."""
        rewards, *rest = self.reward.shape
        return np.zeros((rewards if self.observed else 0, *rest))

    @property
    def closed(self) -> Array:
        """Return [H, X, A]: 0 for an open action, else too low ever to be taken."""
        return closed_pairs(self.mask, self.reward.shape[1:])

    @property
    def uniform(self) -> Array:
        """Return [H, X, A], the policy that takes every open action equally often."""
        return exact.even(np.ones(self.reward.shape[1:], bool) if self.mask is None else self.mask)

    @property
    def baseline_slack(self) -> float:
        """Return the smallest slack of the baseline; infinite if there is none."""
        if self.baseline is None or not len(self.threshold):
            return np.inf
        return float(np.min(self.baseline.returns[1:] - self.threshold))


def told_gap(slater_gap: float | None) -> float:
    """Return the Slater gap for a task: infinite without a constraint, whose gap is None."""
    return np.inf if slater_gap is None else slater_gap


def checked_baseline(problem: CMDP, policy: Array) -> Baseline:
    """Return a policy [H, X, A] as a safe baseline of a problem. Refuse one that is not safe."""
    policy = checked_policy("the baseline", policy, problem.opened)
    returns = exact.returns(problem, policy)
    for n, (value, b) in enumerate(zip(returns[1:], problem.threshold, strict=True)):
        if value <= b:
            raise InputError(
                f"the baseline is not safe: its utility {n + 1} is {value:.6g}, "
                f"which must exceed the threshold {b:.6g}"
            )
    return Baseline(policy, returns)
