"""The one exception a user is meant to read."""


class InputError(ValueError):
    """Bad input: one sentence that names what is wrong and where. The command line exits with 2."""
