"""
Does it converge, or does it oscillate?
=======================================

The figure shows the violation against the price that the algorithm sets, over the second half of
the run. An algorithm that converges is a dot. An algorithm that oscillates is a loop: a violation
raises the price, and slack lowers it.
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
