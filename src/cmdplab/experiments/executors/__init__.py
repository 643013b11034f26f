"""Who carries out the runs of a sweep: processes here, a card, or a Ray cluster.

An executor takes work and tells what has ended; where runs are kept is not its concern.
"""
