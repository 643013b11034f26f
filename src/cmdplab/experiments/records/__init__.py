"""Records of runs on disk, written and read: tables, labels, summaries, groups.

Nothing here runs anything.
"""
