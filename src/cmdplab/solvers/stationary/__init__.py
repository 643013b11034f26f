"""Certified optima of problems without an end, discounted or average: mixtures of policies.

rational.py has the program over mixtures. Policy iteration prices the policies.
"""
