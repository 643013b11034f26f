"""Records of runs on disk: tables, labels and groups of finished and unfinished runs."""
