"""Continue learning: from logged episodes, then live, later, with another budget, elsewhere.

    python examples/learn_another_day.py [folder]

A machine wears out. Action 1 pays 1 and may raise the wear by one level. Action 0 rests the
machine. At the last level the machine breaks, which ends the episode. Action 1 costs 1 of power.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace

import numpy as np

import cmdplab


class Machine:
    """Four levels of wear; any object with these four things can be learned, Gymnasium or not."""

    observation_space = SimpleNamespace(n=4, start=0)
    action_space = SimpleNamespace(n=2, start=0)

    def reset(self, *, seed=None):
        if seed is not None or not hasattr(self, "rng"):
            self.rng = np.random.default_rng(seed)
        self.wear = 0
        return self.wear, {}

    def step(self, action):
        if action == 1:
            self.wear += int(self.rng.random() < 0.3)
        else:
            self.wear = max(self.wear - int(self.rng.random() < 0.5), 0)
        return self.wear, float(action), self.wear == 3, False, {"cost": float(action)}


def logged(episodes: int) -> list[list[tuple]]:
    """Return logged steps (state, action, reward, cost, next state), no next after an end."""
    env, rng, found = Machine(), np.random.default_rng(7), []
    for _ in range(episodes):
        steps, (state, _), ended = [], env.reset(), False
        while not ended and len(steps) < 8:
            action = int(rng.integers(2))
            following, reward, ended, _, info = env.step(action)
            steps.append((state, action, reward, info["cost"], None if ended else following))
            state = following
        found.append(steps)
    return found


def main(folder: Path) -> None:
    """Every way back."""
    log = logged(200)
    offline = cmdplab.fit(log, horizon=8, budget=3.0)
    print(f"offline: {offline.planned.promised.objective.mean:.2f} promised")

    told = {"horizon": 8, "episodes": 300, "evaluate": 500}
    first = cmdplab.learn(Machine(), "UOpt-RPGPD", budget=3.0, data=log, **told)
    print(
        f"live: {first.evaluation.objective.mean:.2f} at {first.evaluation.constrained[0].mean:.2f}"
    )

    first.save(folder / "machine.npz")
    again = cmdplab.Learned.load(folder / "machine.npz")
    tighter = again.with_budget(2.0)
    print(f"budget 2, planned at once: {tighter.planned.promised.objective.mean:.2f} promised")

    second = cmdplab.learn(Machine(), "UOpt-RPGPD", budget=2.0, data=again, **told)
    found = second.evaluation
    print(f"learned on: {found.objective.mean:.2f} at {found.constrained[0].mean:.2f}")
    print(f"seen in all: {second.seen.episodes} episodes")
    second.save(folder / "machine.npz")

    program = (
        "import sys, cmdplab\n"
        "actor = cmdplab.Learned.load(sys.argv[1]).actor(seed=1)\n"
        "print('elsewhere:', *[actor(wear) for wear in (0, 0, 1, 1, 2)])"
    )
    path = str(folder / "machine.npz")
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    print(done.stdout.strip() or done.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp()))
