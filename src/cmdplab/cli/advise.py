"""`cmdplab advise`: an algorithm for a first try on a problem or an environment, with reasons."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cmdplab.cli.options import Json, count, print_json


def advise_command(
    target: Annotated[
        str,
        typer.Argument(
            help="A name of `cmdplab list`, a problem file, or a Gymnasium identifier.",
            show_default=False,
        ),
    ],
    horizon: Annotated[int | None, count("H, for environments that do not say theirs.")] = None,
    constraints: Annotated[int, count("How many there will be, for an environment.")] = 1,
    episodes: Annotated[int | None, count("How many there will be.")] = None,
    safe: Annotated[
        bool, typer.Option("--safe", help="No episode may break a limit while learning.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Which algorithm to try first, and why: rules from a table of small measurements."""
    from cmdplab.live.advice import advise

    asked = _found(target)
    found = advise(asked, horizon=horizon, constraints=constraints, episodes=episodes, safe=safe)
    if as_json:
        values: dict[str, Any] = {"target": target, **found._asdict()}
        print_json("advise", values | {"sizes": found.sizes._asdict()})
        return
    print(found)


def _found(target: str) -> Any:
    """The problem of a name or a file, else the environment of a Gymnasium identifier."""
    from cmdplab.errors import CmdplabError, InputError
    from cmdplab.formats.find import find

    try:
        return find(target)
    except CmdplabError as error:
        unknown = str(error)
    try:
        import gymnasium

        return gymnasium.make(target)
    except ImportError:
        raise InputError(f"{unknown}; Gymnasium is not installed") from None
    except Exception as error:  # whatever an environment raises while it is made
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{unknown}; and for Gymnasium: {first}") from None
