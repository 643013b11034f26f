"""Functions of the theory of the paper. Each names its lemma, states it, and has a test.

`constants` and `bounds` need sizes only. `soft`, `lagrangian`, `saddle` and `potential` need a
problem, a policy and multipliers; parts of `lagrangian` also need optimistic values. `events` needs
counts, and `conversions` needs series of gaps. The numbers of lemmas and equations are those of
Kitamura et al. (2024). A docstring says so where a result is not in the paper.
"""
