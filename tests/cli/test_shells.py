"""The command as a shell calls it: without a word, by its other names, at a TAB, interrupted."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time

import pytest

import cmdplab
from cmdplab.__main__ import main

QUIET = {**os.environ, "CMDPLAB_QUIET": "1"}
STARTS = "import sys; sys.argv[0] = 'cmdplab'; from cmdplab.__main__ import main; main()"


def test_no_word_at_all_is_the_help(call):
    code, out, err = call()
    assert (code, err) == (0, "")
    assert "Usage" in out
    assert "reproduce" in out
    done = subprocess.run(
        [sys.executable, "-m", "cmdplab"], capture_output=True, text=True, env=QUIET, check=True
    )
    assert done.stderr == ""
    assert "Usage: python -m cmdplab" in done.stdout


@pytest.mark.parametrize("words", ["-h", "--help", "help", "help help", "--"])
def test_help_has_several_names(call, words):
    assert call(*words.split()) == call()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_traceback(closed):
    command = [f'"{sys.executable}" -m cmdplab --version {closed}']
    done = subprocess.run(command, capture_output=True, text=True, env=QUIET, shell=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_of_a_command_and_the_version_have_other_names(call):
    assert call("help", "solve") == call("solve", "-h") == call("solve", "--help")
    assert call("version") == call("--version") == (0, f"cmdplab {cmdplab.__version__}\n", "")
    assert call("help", "fly")[0] == 2


@pytest.mark.parametrize("words", [("list", "algorithms"), ("solve", "three-state")])
def test_an_ascii_console_gets_question_marks(words):
    env = {**QUIET, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "cmdplab", *words]
    done = subprocess.run(command, capture_output=True, env=env, check=True)
    assert done.stdout.isascii()
    assert done.stderr == b""


class Interrupts:
    """A finder of modules during whose search somebody presses Ctrl-C."""

    def find_spec(self, name, *_):
        if name == "cmdplab.cli.audit":
            raise KeyboardInterrupt


def test_ctrl_c_during_imports_is_silent(monkeypatch, capsys):
    for name in [each for each in sys.modules if each.startswith("cmdplab.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(cmdplab, "cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr() == ("", "")


def test_a_command_leaves_no_garbage_to_collect_at_its_exit():
    counted = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 1000))"
    done = subprocess.run(
        [sys.executable, "-c", f"{counted}; {STARTS}", "--version"], capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "True"


SET_UP = {
    "bash": ("--norc --noprofile -i", "bind 'set enable-bracketed-paste off'"),
    "zsh": ("-f -i", "autoload -Uz compinit; compinit -u -D"),
}


@pytest.mark.parametrize("shell", SET_UP)
def test_tab_completes_commands_in_a_real_shell(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here")
    script = tmp_path / "cmdplab"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{STARTS}" "$@"\n')
    script.chmod(0o755)
    how, prepare = SET_UP[shell]
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    env = {**QUIET, "PATH": path, "TERM": "dumb", "HOME": str(tmp_path)}
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(shell, [shell, *how.split()], env)
    try:
        load = f'eval "$(_CMDPLAB_COMPLETE=source_{shell} cmdplab)"'
        os.write(terminal, f"{prepare}; {load}; echo LOA''DED\n".encode())
        read_until(terminal, "LOADED")
        os.write(terminal, b"cmdplab sensi\t")
        read_until(terminal, "sensitivity")
        os.write(terminal, b"--ins\t")
        read_until(terminal, "--instance-seed")
    finally:
        os.close(terminal)  # which hangs up
        os.waitpid(process, 0)


def read_until(terminal: int, text: str) -> None:
    """Read what a terminal shows until a text appears; a minute is a failure."""
    shown, end = "", time.monotonic() + 60.0
    while text not in shown:
        left = end - time.monotonic()
        assert left > 0.0, f"no {text!r} in {shown!r}"
        if select.select([terminal], [], [], left)[0]:
            shown += os.read(terminal, 4096).decode(errors="replace")
            assert "Traceback" not in shown
