"""Records of runs on disk, written and read: tables, labels, summaries, groups.

Folders of version 0.1 are read here too. Nothing here runs anything.
"""
