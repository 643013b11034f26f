"""A package of somebody else, which brings a learner and an environment to cmdplab."""
