"""Limit the mean length of a queue: the optimal policy randomises at one length.

An M/M/1 queue has arrivals at rate lambda, service at rate mu, and room for L customers. Maximise
the rate of admitted customers, with a mean length of at most B. The chain is uniformised at rate
lambda + mu = 1. The optimal policy admits everyone below a length l, and nobody above. At l it
admits with probability q. With such a policy the queue is a birth-death chain,

    pi(i) proportional to rho^i for i <= l,    pi(l + 1) proportional to q rho^(l + 1),

and q solves the linear equation "mean length = B".
"""

import numpy as np

import cmdplab

LAMBDA, MU, ROOM, LIMIT = 0.45, 0.55, 12, 2.0
rows = []
for i in range(ROOM + 1):
    for action in ("admit", "reject") if i < ROOM else ("reject",):
        up = LAMBDA if action == "admit" else 0.0
        down = MU if i else 0.0
        for to, p in ((i + 1, up), (i - 1, down), (i, 1.0 - up - down)):
            if p:
                told = {"state": i, "action": action, "next": to, "probability": p}
                rows.append(told | {"reward": up, "length": i})


def birth_death(last: int, q: float) -> tuple[float, float]:
    """Rate of admission and mean length where the queue admits below `last`, and at it with q."""
    weight = (LAMBDA / MU) ** np.arange(last + 2) * np.append(np.ones(last + 1), q)
    share = weight / weight.sum()
    return LAMBDA * (share[:last].sum() + q * share[last]), float(share @ np.arange(last + 2))


last = next(n for n in range(ROOM) if birth_death(n, 1.0)[1] >= LIMIT)
# sum_i (i - B) weight(i) = 0 is linear in q.
weight = (LAMBDA / MU) ** np.arange(last + 2) * (np.arange(last + 2) - LIMIT)
q = -weight[:-1].sum() / weight[-1]
exact, length = birth_death(last, q)

problem = cmdplab.from_table(rows, costs={"length": LIMIT}, criterion="average", name="queue")
found = cmdplab.solve(problem)
admitted = np.asarray(found.policy)[:, problem.labels.actions.index("admit")]
pairs = [
    ("admitted per unit of time", found.value, exact),
    ("mean length", float(found.occupancy.sum(axis=1) @ np.arange(ROOM + 1)), length),
    (f"probability at length {last}", float(admitted[last]), q),
]
for what, ours, closed in pairs:
    print(f"{what:26} {ours:12.8f}   closed form {closed:12.8f}")
print("admits at lengths:", " ".join(f"{p:.3g}" for p in admitted[: last + 2]), "...")
