"""
With a known kernel: does the last policy converge?
===================================================

RPG-PD is a planning method that receives the kernel. The figure shows the error of each
iteration: the gap or the violation, whichever is larger.

NPG-PD (RPG-PD at temperature zero) oscillates for ever. RPG-PD converges near the optimum, and a
lower temperature brings it nearer. If the temperature is too low for the step, it oscillates
again.
"""

import matplotlib.pyplot as plt
import numpy as np

import cmdplab

problem = cmdplab.make("media-streaming")
optimum = cmdplab.solve(problem)

lines = {
    "NPG-PD, temperature 0": (0.0, "#a0a0a0"),
    "RPG-PD, temperature 0.01": (0.01, "#e69f00"),
    "RPG-PD, temperature 0.05": (0.05, "#0072b2"),
    "RPG-PD, temperature 0.1": (0.1, "#d55e00"),
}
axes = plt.figure(figsize=(6.4, 4.0), layout="constrained").subplots()
for label, (temperature, colour) in lines.items():
    row = cmdplab.algorithm("RPG-PD").with_settings(fixed_step=0.05, fixed_temperature=temperature)
    curves = cmdplab.run(problem, row, episodes=20_000, solution=optimum).curves
    away = np.maximum(np.abs(curves["gap"]), curves["violation"])
    axes.plot(curves["episode"], np.maximum(away, 1e-12), color=colour, lw=1.1, label=label)
axes.set_xscale("log")
axes.set_yscale("log")
axes.set_xlabel("iteration")
axes.set_ylabel("distance of the last policy")
axes.legend(frameon=False)
plt.show()
