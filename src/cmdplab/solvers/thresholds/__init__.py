"""The price of thresholds, and their conflicts, both computed from attainable returns.

The returns of all policies are a convex set. A search finds the best point in a direction. All
results consist of such points and of bounds that hold for every policy.
"""
