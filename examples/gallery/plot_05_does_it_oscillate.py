"""
Does it settle, or does it oscillate?
=====================================

The violation against the price that the algorithm puts on it, over the second half of the run. An
algorithm that settles is a dot. One that oscillates is a loop: it breaks the promise, the price
rises, it keeps the promise, the price falls.
"""

import matplotlib.pyplot as plt

import cmdplab

problem = cmdplab.make("published")
optimum = cmdplab.solve(problem)

axes = plt.figure(figsize=(5.2, 4.2), layout="constrained").subplots()
for name, colour in (("No-regularization", "#d55e00"), ("UOpt-RPGPD", "#0072b2")):
    curves = cmdplab.run(problem, name, episodes=30_000, solution=optimum).curves
    late = curves["episode"] > 15_000
    axes.plot(
        curves["multiplier_1"][late], curves["violation"][late], color=colour, lw=1.2, label=name
    )
axes.axhline(0, color="0.7", lw=0.6)
axes.axvline(optimum.multiplier[0], color="0.7", lw=0.6)
axes.set_xlabel("price (multiplier)")
axes.set_ylabel("violation")
axes.legend(frameon=False)
plt.show()
