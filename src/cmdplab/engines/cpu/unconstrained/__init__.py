"""UCBVI and UCRL2 on the CPU engine: one session, and its episode compiled, in natural axes.

A room of its own: they share neither the layout of pairs nor the boxes of the other families.
"""
