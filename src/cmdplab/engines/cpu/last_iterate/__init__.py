"""OPG-PD and OMWU-PD on the CPU engine: one session, and its iteration compiled, in natural axes.

A room of its own: nothing is counted or drawn, and the kernel is that which the task tells.
"""
