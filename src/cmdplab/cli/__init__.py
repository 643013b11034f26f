"""The command line. Every command is thin: it reads arguments, calls the library, prints.

Heavy modules are imported inside the commands, so that `cmdplab --help` answers at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from cmdplab import __version__
from cmdplab.cli import audit, board, listing, plot, policy, problem, run, study, sweep, theory
from cmdplab.errors import CmdplabError, printable

INTERRUPTED = 130

app = typer.Typer(
    help=(
        "A laboratory for online constrained MDPs: certified optima, exact measurements, fast "
        "learners. Start with [bold]cmdplab reproduce[/bold], which redraws the figure of "
        "Kitamura et al. (2024) in about two minutes."
    ),
    epilog="Every command takes --json (docs/json.md). Bad input exits with code 2.",
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
COMMANDS: dict[str, Callable[..., None]] = {
    "reproduce": study.reproduce_command,
    "compare": study.compare_command,
    "run": run.run_command,
    "solve": problem.solve_command,
    "describe": problem.describe_command,
    "advise": policy.advise_command,
    "sensitivity": problem.sensitivity_command,
    "frontier": problem.frontier_command,
    "theory": theory.theory_command,
    "convert": problem.convert_command,
    "evaluate": policy.evaluate_command,
    "explain": policy.explain_command,
    "list": listing.list_command,
    "sweep": sweep.sweep_command,
    "audit": audit.audit_command,
    "board": board.board_command,
    "report": plot.report_command,
    "plot": plot.plot_command,
    "resume": sweep.resume_command,
    "status": sweep.status_command,
}
for name, command in COMMANDS.items():
    app.command(name)(command)
app.command("export", hidden=True)(sweep.export_command)  # `convert` of a folder


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"cmdplab {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line: bad input is one sentence and exit code 2."""
    warnings.showwarning = _show
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the shell has closed it: `>&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (until the process ends)
        elif isinstance(stream := getattr(sys, name), TextIOWrapper):
            stream.reconfigure(errors="replace")  # an ASCII console shows ? for a dash
    try:
        code = app(args=_arguments(sys.argv[1:]), standalone_mode=False)
        sys.stdout.flush()
        sys.exit(code)
    except CmdplabError as error:
        _fail(str(error), 2)
    except OSError as error:  # of standard output: files of ours raise StorageError
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the exit flushes again
        _fail(f"cannot write the output: {error.strerror}", 1)
    except SystemExit as end:  # Typer has dealt with Ctrl-C and closed pipes by then
        if end.code == INTERRUPTED:
            print("cmdplab: interrupted", file=sys.stderr)
        raise
    except Exception as error:
        # Typer's own complaints about arguments; its module for them depends on its version.
        if not hasattr(error, "format_message"):
            raise
        _fail((error.format_message() or "say what to do, or --help") + _with_option(error), 2)


def _with_option(error: Exception) -> str:
    """Return which commands have an option that this one lacks; empty for other errors."""
    if not hasattr(error, "possibilities") or not hasattr(error, "option_name"):
        return ""
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    having = [
        name
        for name in COMMANDS
        if any(error.option_name in parameter.opts for parameter in commands[name].params)
    ]
    return f"; commands that have it: {', '.join(having)}" if having else ""


def _arguments(given: list[str]) -> list[str]:
    """Return arguments as Typer reads them.

    No word at all and `help` ask for the help, `version` for the version. `--ray` without an
    address means a local cluster: Typer has no optional values.
    """
    match given:
        case [] | ["--"] | ["help", "help"]:
            return ["--help"]
        case ["help", *command]:
            return [*command, "--help"]
        case ["version"]:
            return ["--version"]
    arguments = []
    for this, following in zip(given, [*given[1:], "-"], strict=True):
        arguments.append(this)
        if this == "--ray" and following.startswith("-"):
            arguments.append("local")
    return arguments


def _show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
    """Print a warning of cmdplab as a sentence, without its place in the code."""
    if category.__module__.startswith("cmdplab."):
        print(f"cmdplab: warning: {printable(str(message))}", file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, *rest[:2]), end="", file=sys.stderr)


def _fail(sentence: str, code: int) -> None:
    print(f"cmdplab: {printable(sentence)}", file=sys.stderr)
    sys.exit(code)
