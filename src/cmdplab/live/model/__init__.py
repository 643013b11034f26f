"""Counts of transitions, the estimated model, and plans. These modules play no environment."""
