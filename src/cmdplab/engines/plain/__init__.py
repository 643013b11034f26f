"""The families in plain Python, written to be read: the oracles of all compiled code."""
