"""The exceptions a user is meant to read: one sentence that names what is wrong and where.

    CmdplabError                 all of them; the command line prints the sentence and exits with 2
      InputError                 what a person gave: an argument, a file's content
        LearnerError             a learner from outside that broke its contract
        EnvironmentFailed        an environment that failed while it was learned
        OpenCertificateError     a problem too nearly degenerate to have a certified optimum
      StorageError               what the disk refused: full, not writable, held by somebody else
      EngineError                what this machine lacks: a card, an optional package

Each is also the exception of Python that says the same (ValueError, OSError, RuntimeError).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class CmdplabError(Exception):
    """What cmdplab refuses to do, in a sentence. The command line exits with 2.

    Names from files may hold anything: what would break the line or steer a terminal is shown as ?.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(
            "".join("?" if each < " " or each == "\x7f" else each for each in sentence)
        )


class InputError(CmdplabError, ValueError):
    """Bad input: an argument, or a file whose content is not what it should be."""


class LearnerError(InputError):
    """A learner from outside that broke its contract, with what it gave and when."""


class EnvironmentFailed(InputError):  # noqa: N818 (it says what happened)
    """An environment that raised, or showed what it must not, at a step of an episode.

    `learned` is what was learned before, without an evaluation; None where nothing was.
    """

    learned: Any = None


class OpenCertificateError(InputError):
    """A problem so nearly degenerate that its optimum cannot be certified: there is no answer."""


class StorageError(CmdplabError, OSError):
    """A file or folder that cannot be opened, written or locked: a full disk, missing rights."""


class EngineError(CmdplabError, RuntimeError):
    """Something this machine lacks for what was asked: a graphics card, an optional package."""


@contextmanager
def storage(what: str) -> Iterator[None]:
    """Tell what the system refuses within the block as a `StorageError` that begins with `what`."""
    try:
        yield
    except CmdplabError:
        raise
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or error}") from None


@contextmanager
def naming(where: object) -> Iterator[None]:
    """Begin the sentence of what is refused within the block with a file, or a place in it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
