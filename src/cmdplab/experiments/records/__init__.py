"""What runs leave on disk, and how it is read again: tables, labels, summaries, groups.

Folders of version 0.1 are read here too. Nothing here runs anything.
"""
