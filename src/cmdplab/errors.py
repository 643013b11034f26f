"""Exceptions of cmdplab: each message is one sentence that names the mistake and its place.

    CmdplabError                 base class; the command line prints the sentence and exits with 2
      InputError                 invalid input: an argument, or the content of a file
        LearnerError             a learner from outside broke its contract
        EnvironmentFailed        an environment failed during learning
        OpenCertificateError     the optimum of a nearly degenerate problem cannot be certified
      StorageError               a file or folder is not writable, locked, or on a full disk
      EngineError                this machine lacks a GPU or an optional package

Each class also derives from a fitting exception of Python (ValueError, OSError, RuntimeError).
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

LONGEST_WORD, LONGEST_SENTENCE = 250, 1000  # letters of a message


def printable(text: str, keep: str = "") -> str:
    """Return a text with ? for each character that is not printable and not in `keep`.

    Unprintable characters (`str.isprintable`) may break a line or control a terminal.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else "?" for each in text)


def shown(given: object) -> str:
    """Return the `repr` of a wrong value for an error message, shortened if it is long."""
    try:
        return shortened(repr(given), 200)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number of thousands of digits"


def shortened(text: str, most: int) -> str:
    """Return a text of at most about `most` letters, without its middle if it is longer."""
    return text if len(text) <= most else f"{text[: 2 * most // 3]}...{text[-most // 4 :]}"


class CmdplabError(Exception):
    """Base class of all errors of cmdplab, with a sentence. The command line exits with 2.

    Text from files may contain any character. It is made printable, and shortened.
    """

    def __init__(self, sentence: str) -> None:
        words = re.sub(
            rf"\S{{{LONGEST_WORD},}}", lambda word: shortened(word[0], 60), printable(sentence)
        )
        super().__init__(shortened(words, LONGEST_SENTENCE))


class InputError(CmdplabError, ValueError):
    """Error for a wrong argument, or a file with wrong content."""


class LearnerError(InputError):
    """Error for a learner from outside that broke its contract."""


class EnvironmentFailed(InputError):  # noqa: N818 (it says what happened)
    """Error for an environment that raised, or returned an invalid value, during an episode.

    `learned` is the result up to then, without an evaluation, or None if there is none.
    """

    learned: Any = None


class OpenCertificateError(InputError):
    """Error for a nearly degenerate problem whose optimum cannot be certified."""


class StorageError(CmdplabError, OSError):
    """Error for a file or folder that cannot be opened, written or locked."""


class EngineError(CmdplabError, RuntimeError):
    """Error for a GPU or an optional package that this machine lacks."""


EXTRAS = {"gymnasium": "gym", "matplotlib": "lab", "pyarrow": "lab", "ray": "ray", "xarray": "data"}


def check_installed(*packages: str) -> None:
    """Raise an `EngineError` if an optional package is missing. It names the extra to install."""
    for package in packages:
        if find_spec(package) is None:
            raise EngineError(
                f"{package} is not installed: pip install 'cmdplab[{EXTRAS[package]}]'"
            )


@contextmanager
def storage(what: str) -> Iterator[None]:
    """Convert an `OSError` in a `with` block to a `StorageError` that begins with `what`."""
    try:
        yield
    except CmdplabError:
        raise
    except OSError as error:
        raise StorageError(f"{what}: {error.strerror or error}") from None


@contextmanager
def naming(where: object) -> Iterator[None]:
    """Put `where`, a file or a place in it, before an `InputError` raised in a `with` block."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
