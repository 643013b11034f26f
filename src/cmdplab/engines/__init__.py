"""Engines own the loops: they turn (problem, row, noise) into exact returns, episode after episode.

plain/ is written to be read, cpu/ and gpu/ to be fast; all give the same numbers. A formula never
stands here: it is in algorithms/. Judging what was earned is the work of measures/.
"""
