"""What learning on a live environment gives."""

from __future__ import annotations

from dataclasses import dataclass

from cmdplab import display
from cmdplab.algorithms.row import Row
from cmdplab.cmdp.policy import Policy
from cmdplab.live.evaluation import Curve, Evaluation
from cmdplab.statistics.means import Estimate
from cmdplab.types import Array, Indices

NO_EXACT = (
    "The kernel is not known: these are estimates, and there is no exact value, "
    "optimum or regret to be had."
)


@display.shown
@dataclass(frozen=True, eq=False)
class Learned:
    """A policy, and what episodes say about it. All numbers are in the user's units."""

    algorithm: Row
    policy: Policy  # [H, X, A], the last one
    multiplier: Array  # [N], objective per unit of cost or utility
    visits: Indices  # [H, X, A], while learning
    episodes: int
    curve: Curve  # of the returns while learning
    evaluation: Evaluation  # of the last policy, on episodes of its own
    late: Evaluation  # of the policies played in the last tenth of the learning
    limit: Array  # [N], the budgets or thresholds
    names: tuple[str, ...]  # [1 + N], of the signals
    reward_range: tuple[float, float]  # mapped to [0, 1] for the learner
    seconds: float  # of learning, in this call
    notes: tuple[str, ...] = ()

    def _facts(self) -> tuple[str, display.Facts]:
        found = [self.evaluation.objective, *self.evaluation.constrained]
        facts = [
            (display.name(name), f"{each.mean:.6g} ({each.low:.6g} to {each.high:.6g})")
            for name, each in zip(self.names, found, strict=True)
        ]
        facts += [
            ("limits", display.numbers(self.limit)),
            ("multiplier", display.numbers(self.multiplier)),
            ("policy", display.shape(self.policy.array, "H x X x A")),
            ("learnt from", display.count(self.episodes, "episode")),
        ]
        return f"Learned by {display.name(self.algorithm.name)}", facts

    def summary(self) -> str:
        """All of it in a few lines of words."""
        rule = "at most" if self.names[1].startswith("cost") else "at least"
        lines = [
            f"{self.algorithm.name}, {self.episodes:,} episodes",
            f"the last policy, over {self.evaluation.objective.episodes:,} further episodes:",
            f"  {_line(self.names[0], self.evaluation.objective)}",
        ]
        for name, limit, multiplier, found in zip(
            self.names[1:], self.limit, self.multiplier, self.evaluation.constrained, strict=True
        ):
            wanted = f", {rule} {limit:g} wanted, multiplier {multiplier:.4g}"
            lines.append(f"  {_line(name, found)}{wanted}")
        lines.append(f"policies of the last {self.late.objective.episodes:,} learning episodes:")
        late = [self.late.objective, *self.late.constrained]
        lines += [f"  {_line(name, each)}" for name, each in zip(self.names, late, strict=True)]
        low, high = self.reward_range
        if (low, high) != (0.0, 1.0):
            lines.append(f"The learner saw each reward r as (r - {low:g}) / {high - low:g}.")
        return "\n".join([*lines, *self.notes, NO_EXACT])


def _line(name: str, found: Estimate) -> str:
    return f"{name} {found.mean:.4f} (95 % interval {found.low:.4f} to {found.high:.4f})"
