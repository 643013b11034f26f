"""`cmdplab export-suite`: the environments as a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cmdplab.cli.options import Json, print_json, print_line, print_note, say


def export_suite_command(
    folder: Annotated[Path, typer.Argument(help="Where to write: empty, or not there yet.")],
    environment: Annotated[
        list[str] | None, typer.Option(help="Only this one; may be repeated. Default: all fixed.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the fixed environments as a data set that needs no cmdplab to be read.

    Each as .npz, .drn and a long table, with its certified optimum, multipliers, Slater gap, units
    and origin; a README, and checksums, which come last.
    """
    from cmdplab.formats.suite import export_suite

    def tell(name: str) -> None:
        say("" if as_json else f"writing {name}")

    found = export_suite(folder, environment or (), tell)
    if as_json:
        print_json("export-suite", found._asdict() | {"folder": str(found.folder)})
        return
    size = f"{found.files} files, {found.bytes / 1e6:.1f} MB"
    print_line(f"{found.folder}: {len(found.environments)} environments, {size}", soft_wrap=True)
    for note in found.notes:
        print_note(note, soft_wrap=True)
