"""Learning on a live environment, which can be played but whose kernel is unknown.

learned = cmdplab.learn(env, "OptCMDP", horizon=20, episodes=200_000, budget=4.0, cost=cost)
print(learned.summary())
"""

from cmdplab.live.advice import Advice, advise
from cmdplab.live.evaluation import Curve, Evaluation
from cmdplab.live.learned import Fitted, Learned
from cmdplab.live.logs import fit
from cmdplab.live.model.baseline import Baseline
from cmdplab.live.run import learn
from cmdplab.live.session import shown
from cmdplab.live.spaces import Grid, Quantiles
from cmdplab.statistics.intervals import Estimate

__all__ = [
    "Advice",
    "Baseline",
    "Curve",
    "Estimate",
    "Evaluation",
    "Fitted",
    "Grid",
    "Learned",
    "Quantiles",
    "advise",
    "fit",
    "learn",
    "shown",
]
