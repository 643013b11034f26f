"""
Which algorithm learns fastest?
===============================

Three kinds of learners play one problem, with three seeds each and the same random numbers. The
regret is the accumulated loss: a flat line has stopped losing.
"""

import matplotlib.pyplot as plt

import cmdplab

found = cmdplab.compare(
    "media-streaming", ["UOpt-RPGPD", "OptCMDP", "Triple-Q"], episodes=10_000, seeds=3
)
for row in found.table():
    lost, missed = row["strong_regret"], row["strong_violation_regret"]
    print(f"{row['label']:12} lost {lost:8.1f}, missed {missed:8.1f}")

# %%
# The two sums, added and drawn over the episodes:
axes = plt.figure(figsize=(6, 3.8), layout="constrained").subplots()
for label, runs in found.runs.items():
    curves = runs[0].curves
    total = curves["strong_regret"] + curves["strong_violation_regret"]
    axes.loglog(curves["episode"], total, label=label)
axes.set_xlabel("episode")
axes.set_ylabel("regret + violation regret (seed 0)")
axes.legend(frameon=False)
plt.show()
