"""Certified optima of problems without an end, discounted or average: mixtures of policies.

The program over mixtures is that of rational.py; policies are priced by policy iteration.
"""
