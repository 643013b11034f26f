"""The exceptions a user is meant to read."""


class InputError(ValueError):
    """Bad input: one sentence that names what is wrong and where. The command line exits with 2.

    Names from files may hold anything: what would break the line or steer a terminal is shown as ?.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(
            "".join("?" if each < " " or each == "\x7f" else each for each in sentence)
        )


class LearnerError(InputError):
    """A learner from outside that broke its contract."""


class OpenCertificateError(InputError):
    """A problem so nearly degenerate that its optimum cannot be certified: there is no answer."""
