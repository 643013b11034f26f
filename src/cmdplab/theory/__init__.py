"""The theory of the paper as functions: each names its lemma, states it, and is tested.

`constants` and `bounds` need sizes only; `soft`, `lagrangian`, `saddle` and `potential` a problem,
a policy and multipliers; `stability` a saddle point; `differences` also the optimistic values;
`events` and `nice` counts; `conversions` series of gaps. Numbers of lemmas and equations are those
of Kitamura et al. (2024); what is not in the paper says so.
"""
