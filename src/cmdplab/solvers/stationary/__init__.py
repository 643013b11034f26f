"""Certified optima of problems without an end, discounted or average: mixtures of policies.

mixtures.py has the program over mixtures. Policy iteration or relative value iteration prices the
policies.
"""
