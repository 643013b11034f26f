"""What thresholds cost, and which of them conflict: questions about attainable returns.

The returns of all policies are a convex set. It is asked for its best point in a direction, and
answers to all questions here are made of such points and of bounds that hold for every policy.
"""
