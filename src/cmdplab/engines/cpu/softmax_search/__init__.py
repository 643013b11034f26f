"""OPSE and Ghosh-Zhou-Shroff on the CPU engine: one session, and its search, compiled exactly.

What they share with other learners is beside this folder; here nothing is for anyone else.
"""
