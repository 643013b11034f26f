"""Compiled code on disk: found while nothing that it follows from has changed, else made anew."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from cmdplab import messages
from cmdplab.numerics import cache, compiling

SOURCE = '''
from typing import NamedTuple
from cmdplab.numerics.compiling import by_type, compiled, steering

SCALE = 2.0
POWERS = (1.0, 2.0)

class Table(NamedTuple):
    """A table."""

    first: float
    second: float

def formula(x, y=1.0):
    """A formula."""
    inside = [POWERS[0] for _ in range(2)]
    return SCALE * x + y * inside[0]  # a comment

@compiled
def inner(x):
    return formula(x)

def body(table):
    return inner(table.first)

@by_type({Table: body})
def chosen(table): ...

@steering
def steer(table):
    return chosen(table)

@compiled
def outer(table):
    """All of it."""
    return steer(table)

def beside():
    return SCALE
'''

NEUTRAL = (
    ("All of it.", "All of it, in other words."),
    ("A formula.", "One formula."),
    ("A table.", "Another table."),
    ("# a comment", "# more of a comment"),
    ("\nSCALE", "\n\n\nSCALE"),
    ("    return SCALE\n", "    return -SCALE\n"),
)
CHANGES = (
    ("SCALE = 2.0", "SCALE = 3.0"),
    ("(1.0, 2.0)", "(1.5, 2.0)"),
    ("SCALE * x + y", "SCALE * x - y"),
    ("y=1.0", "y=2.0"),
    ("POWERS[0] for", "POWERS[1] for"),
    ("    first: float\n    second: float", "    second: float\n    first: float"),
    ("return inner(table.first)", "return inner(table.second)"),
    ("@compiled\ndef inner", "@steering\ndef inner"),
    ("by_type({Table: body})", "by_type({Table: inner})"),
    ("return steer(table)", "return chosen(table)"),
)


def fingerprint(source: str) -> str:
    scope = {"__name__": "made"}
    exec(source, scope)
    return cache.fingerprint(scope["outer"])


@pytest.mark.parametrize("edit", NEUTRAL, ids=str)
def test_what_no_machine_code_follows_from_leaves_compiled_code_in_use(edit):
    assert edit[0] in SOURCE
    assert fingerprint(SOURCE.replace(*edit)) == fingerprint(SOURCE)


@pytest.mark.parametrize("edit", CHANGES, ids=str)
def test_an_edit_of_anything_that_is_called_asks_for_other_code(edit):
    assert edit[0] in SOURCE
    assert fingerprint(SOURCE.replace(*edit)) != fingerprint(SOURCE)


def test_two_ways_to_compile_one_function_are_kept_apart():
    plain = FunctionType(double.__code__, {"__name__": __name__}, "double")
    one, two = compiling.compiled(plain), compiling.compiled_exactly(plain)
    assert cache.fingerprint(one) != cache.fingerprint(two)


def test_every_process_asks_for_the_same_files():
    """Nothing depends on addresses, on the order of sets or on what was imported first."""
    program = (
        "import cmdplab.engines.families\n"
        "from cmdplab.gym import dynamics\n"
        "from cmdplab.numerics import cache, compiling\n"
        "names = {f'{each.__module__}.{each.__name__} {cache.fingerprint(each)}'\n"
        "         for each in compiling.called()}\n"
        "print(*sorted(names), sep='\\n')"
    )
    said = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        said.add(subprocess.check_output([sys.executable, "-c", program], env=environment))
    (all_of_them,) = said
    assert len(all_of_them.split(b"\n")) > 100


def double(x):
    return x + x


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty cache, and sentences that were not said before."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv(messages.QUIET, "")
    monkeypatch.setattr(messages, "_SAID", set())
    cache.folder.cache_clear()
    yield tmp_path / "compiled"
    cache.folder.cache_clear()


def hits() -> int:
    """Compile a function, or find it on disk: 1."""
    made: Any = compiling.compiled(double)
    try:
        assert made(2.0) == 4.0
    finally:
        compiling._CALLED.discard(made)
    return sum(made.dispatcher.stats.cache_hits.values())


def test_what_was_compiled_is_found(place, capsys):
    assert (hits(), hits()) == (0, 1)
    assert [each.name.split("-")[0] for each in place.iterdir()] == ["test_cache.double"]
    assert place.stat().st_mode & 0o777 == 0o700
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "damage",
    [
        lambda held: b"",
        lambda held: held[:20],
        lambda held: held[: len(held) // 2],
        lambda held: held[:-1] + b"\0",
        lambda held: held.replace(held[4000:5000], b"\0" * 1000),
    ],
    ids=["empty", "cut in its head", "cut in half", "another end", "zeros"],
)
def test_a_damaged_file_is_as_good_as_none_and_is_replaced(damage, place, capsys):
    hits()
    (file,) = place.iterdir()
    whole = file.read_bytes()
    assert damage(whole) != whole
    file.write_bytes(damage(whole))
    assert (hits(), hits()) == (0, 1)
    assert capsys.readouterr().err == f"damaged files in {place} are compiled anew and replaced\n"


def test_a_file_that_is_whole_but_not_ours_is_as_good_as_none(place):
    hits()
    (file,) = place.iterdir()
    body = b"cno_such_module\nnothing\n."
    file.write_bytes(hashlib.sha256(body).digest() + body)
    assert (hits(), hits()) == (0, 1)


@pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")
@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_a_folder_into_which_others_may_write_is_not_read_from(mode, place, capsys):
    hits()
    place.chmod(mode)
    cache.folder.cache_clear()
    assert (hits(), hits()) == (0, 0)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"others may write into {place}; chmod 700 it" in said


@pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX")
def test_a_folder_of_somebody_else_is_not_read_from(place, capsys, monkeypatch):
    hits()
    if os.getuid() == 0:
        os.chown(place, 4321, -1)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 4321)
    cache.folder.cache_clear()
    assert hits() == 0
    assert f"{place} belongs to another user" in capsys.readouterr().err


def test_a_full_disk_is_no_reason_to_stop(place, capsys, monkeypatch):
    def full(path: Path, data: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        assert (hits(), hits()) == (0, 0)
    assert list(place.iterdir()) == []
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"{place}: No space left on device" in said


def test_where_no_folder_can_be_made_all_is_compiled_in_every_process(place, capsys, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null/here")
    assert (hits(), hits()) == (0, 0)
    assert capsys.readouterr().err.count("compiled code is not kept") == 1
