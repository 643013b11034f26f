"""The problem: its arrays and checks, and the exact worth of a policy under a known kernel.

Plain NumPy. Nothing here learns or optimises. formats/ reads the files of other tools.
"""
