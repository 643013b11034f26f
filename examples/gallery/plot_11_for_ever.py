"""
A problem without an end: discount it, or cut it off?
=====================================================

The figure shows the value of the discounted problem, and of its first H steps. A cut costs
accuracy: with a discount of 0.95, about 90 steps come within one percent.
"""

import matplotlib.pyplot as plt

import cmdplab

rows = [
    dict(state="ok", action="careful", next="ok", probability=0.9, reward=4, energy=1),
    dict(state="ok", action="careful", next="broken", probability=0.1, reward=4, energy=1),
    dict(state="ok", action="fast", next="ok", probability=0.5, reward=10, energy=3),
    dict(state="ok", action="fast", next="broken", probability=0.5, reward=10, energy=3),
    dict(state="broken", action="repair", next="ok", probability=1, reward=-2, energy=0),
]
for_ever = cmdplab.solve(cmdplab.from_table(rows, discount=0.95)).value

horizons, values = range(10, 181, 10), []
for horizon in horizons:
    cut = cmdplab.from_table(rows, discount=0.95, horizon=horizon)
    values.append(cut.labels.signals[0].published(cmdplab.solve(cut).value))

axes = plt.figure(figsize=(6, 3.4), layout="constrained").subplots()
axes.plot(horizons, values, "o-", ms=3, color="#0072b2", label="cut after H steps")
axes.axhline(for_ever, color="#d55e00", ls="--", label="for ever")
axes.set_xlabel("H")
axes.set_ylabel("optimal value")
axes.legend(frameon=False)
plt.show()
