"""
Which algorithms are safe while they learn?
===========================================

DOPE begins with a safe policy and leaves it only as far as its estimate allows. It earns less at
first and does not violate the constraint. UOpt-RPGPD explores first and violates.
"""

import matplotlib.pyplot as plt

import cmdplab

problem = cmdplab.make("three-state")
optimum = cmdplab.solve(problem)

figure = plt.figure(figsize=(7.5, 3.4), layout="constrained")
left, right = figure.subplots(1, 2, sharex=True)
for name in ("UOpt-RPGPD", "DOPE"):
    row = cmdplab.algorithm(name)
    curves = cmdplab.run(problem, row, episodes=5_000, solution=optimum).curves
    left.semilogx(curves["episode"], curves["gap"], label=name)
    right.semilogx(curves["episode"], curves["violation"], label=name)
for axes, what in ((left, "gap"), (right, "violation")):
    axes.axhline(0, color="0.7", lw=0.6)
    axes.set_xlabel("episode")
    axes.set_ylabel(what)
left.legend(frameon=False)
plt.show()
