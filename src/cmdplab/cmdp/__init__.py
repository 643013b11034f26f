"""Problems: their arrays, checks and files, and exact returns of policies under a known kernel.

Plain NumPy. Nothing here learns or optimises. formats/ reads the files of other tools.
"""
