"""
With a known kernel: does the last policy settle?
=================================================

Four planning methods that are told the kernel, so that nothing is left but the two players. Shown
is how far each iteration is from the optimum: the gap or the violation, whichever is larger.

NPG-PD (RPG-PD at temperature zero) circles for ever. RPG-PD settles beside the optimum, by as much
as its temperature asks for. The optimistic methods guess the next gradient instead: OPG-PD, which
projects, arrives; OMWU-PD, which multiplies weights, is on its way.
"""

import matplotlib.pyplot as plt
import numpy as np

import cmdplab

problem = cmdplab.make("media-streaming")
optimum = cmdplab.solve(problem)

lines = {
    "NPG-PD": ("RPG-PD", {"fixed_temperature": 0.0}, "#a0a0a0"),
    "RPG-PD": ("RPG-PD", {"fixed_temperature": 0.1}, "#0072b2"),
    "OMWU-PD": ("OMWU-PD", {}, "#e69f00"),
    "OPG-PD": ("OPG-PD", {}, "#d55e00"),
}
axes = plt.figure(figsize=(6.4, 4.0), layout="constrained").subplots()
for label, (name, settings, colour) in lines.items():
    row = cmdplab.algorithm(name).with_settings(fixed_step=0.05, **settings)
    curves = cmdplab.run(problem, row, episodes=20_000, solution=optimum).curves
    away = np.maximum(np.abs(curves["gap"]), curves["violation"])
    axes.plot(curves["episode"], np.maximum(away, 1e-12), color=colour, lw=1.1, label=label)
axes.set_xscale("log")
axes.set_yscale("log")
axes.set_xlabel("iteration")
axes.set_ylabel("distance of the last policy")
axes.legend(frameon=False)
plt.show()
