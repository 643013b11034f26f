"""The exceptions a user is meant to read."""


class InputError(ValueError):
    """Bad input: one sentence that names what is wrong and where. The command line exits with 2."""


class OpenCertificateError(InputError):
    """A problem so nearly degenerate that its optimum cannot be certified: there is no answer."""
