"""Exceptions for a user to read: one sentence that names the mistake and its place.

    CmdplabError                 all of them; the command line prints the sentence and exits with 2
      InputError                 what a person gave: an argument, a file's content
        LearnerError             a learner from outside that broke its contract
        EnvironmentFailed        an environment that failed while it was learned
        OpenCertificateError     a problem too nearly degenerate to have a certified optimum
      StorageError               what the disk refused: full, not writable, held by somebody else
      EngineError                what this machine lacks: a card, an optional package

Each is also the exception of Python that says the same (ValueError, OSError, RuntimeError).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

LONGEST_WORD, LONGEST_SENTENCE = 250, 1000  # letters of a message


def printable(text: str, keep: str = "") -> str:
    """Return a text with ? for each character that may break a line or steer a terminal.

    These are the characters that `str.isprintable` refuses: control and format characters,
    separators, halves of characters. Those in `keep` stay.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else "?" for each in text)


def shown(given: object) -> str:
    """Return the `repr` of a wrong value for an error, or a description of one too long for it."""
    try:
        return shortened(repr(given), 200)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number of thousands of digits"


def shortened(text: str, most: int) -> str:
    """Return a text without its middle if it has more than `most` letters."""
    return text if len(text) <= most else f"{text[: 2 * most // 3]}...{text[-most // 4 :]}"


class CmdplabError(Exception):
    """A refusal of cmdplab, in a sentence. The command line exits with 2.

    Names from files may hold any character: they are made printable, and shortened.
    """

    def __init__(self, sentence: str) -> None:
        words = re.sub(
            rf"\S{{{LONGEST_WORD},}}", lambda word: shortened(word[0], 60), printable(sentence)
        )
        super().__init__(shortened(words, LONGEST_SENTENCE))


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


EXTRAS = {"gymnasium": "gym", "matplotlib": "lab", "pyarrow": "lab", "ray": "ray", "xarray": "data"}


def check_installed(*packages: str) -> None:
    """Raise an `EngineError` that names the extra to install if an optional package is missing."""
    for package in packages:
        if find_spec(package) is None:
            raise EngineError(
                f"{package} is not installed: pip install 'cmdplab[{EXTRAS[package]}]'"
            )


@contextmanager
def storage(what: str) -> Iterator[None]:
    """Raise errors of the system within the block as a `StorageError` that begins with `what`."""
    try:
        yield
    except CmdplabError:
        raise
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or error}") from None


@contextmanager
def naming(where: object) -> Iterator[None]:
    """Begin the sentence of an `InputError` within the block with a file, or a place in it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
