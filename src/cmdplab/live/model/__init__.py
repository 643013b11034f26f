"""Models from counts: counted transitions, the estimated model, and plans. No episode is played."""
