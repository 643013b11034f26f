"""`cmdplab board`: every algorithm on every fixed problem, and the page about them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cmdplab.cli.options import Workers, command, count, find_here, option, split
from cmdplab.cli.output import (
    Answer,
    errors,
    print_line,
    print_note,
    print_table,
    printing_aside,
    warn,
)

if TYPE_CHECKING:
    from cmdplab.report.board import BoardData

MOST_TROUBLES = 20  # in a terminal; the page has all


@command()
def board_command(
    out: Annotated[Path, option("The folder of the board.")] = Path("runs/board"),
    algorithms: Annotated[
        list[str] | None,
        option(
            "Only these: NAME, NAME:PRESET, `all` of ours, or package.module:name, a learner "
            "of your own (importing it runs that module's code); repeat, or separate by commas. "
            "Default: all of a new board; of one that is there, all but learners from outside."
        ),
    ] = None,
    problems: Annotated[
        list[str] | None,
        option("Only these: environments, or NAME:INSTANCE of a random one. Default: the board's."),
    ] = None,
    steps: Annotated[
        int | None, count("Steps of each run; default: the board's, 200,000 of a new one.")
    ] = None,
    seeds: Annotated[
        int | None, count("Runs of each line on each problem; default: the board's, 10.")
    ] = None,
    workers: Workers = None,
    keep_records: Annotated[
        bool,
        option(
            "Keep curves and checkpoints too, half a megabyte a run; cells link to them.",
            "--keep-records",
        ),
    ] = False,
    page: Annotated[
        Path | None, option("Play nothing: write the page of what is there into this folder.")
    ] = None,
) -> Answer:
    """Run the board: tune every algorithm, then play theory and tuned lines on every problem.

    The protocol is in docs/howto/board.md. Interrupted at any moment, the same command goes on; a
    board that is there gets what is missing, so that a new algorithm is a new line.

    Ends by writing the page: board.html, with board.csv, board.parquet and board.md beside it. A
    row with a run missing or failed is not shown: page and terminal name it. Where no row is whole,
    nothing is written and the exit code is 2.
    """
    if page is not None:
        data = _page(out, page)
        return _answer(page, data, sum(each.missing + each.failed for each in data.lacking))
    from cmdplab.algorithms import is_outside
    from cmdplab.experiments.play import check_workers
    from cmdplab.experiments.progress import sweep_shown
    from cmdplab.studies.board import entered, named, places_named
    from cmdplab.studies.board_runs import play

    check_workers(workers)
    given = split(algorithms)
    find_here(given)
    with printing_aside():
        names = [name for each in given for name in named(each)]
        places = places_named(split(problems))
        board = entered(out, steps, seeds, names, places)
        played = play(
            out,
            board,
            workers,
            names=names,
            places=places,
            keep=keep_records,
            shown=lambda works: sweep_shown(works, errors()),
        )
    ended = not played.untuned and played.missing == len(played.failed)
    for _, words in played.failed[:MOST_TROUBLES]:
        warn(words)
    last, code = "", 0
    if played.failed:
        last = f"warning: {len(played.failed)} runs failed; the same command tries them again"
        code = 2 if all(is_outside(name) for name, _ in played.failed) else 1
    elif not ended:
        tuning = f" and the tuning of {len(played.untuned)} algorithms" if played.untuned else ""
        last = f"{played.missing} runs{tuning} are missing; go on with the same command"
        code = 130
    return _answer(out, _page(out, out) if ended else None, played.missing, last, code)


def _page(folder: Path, out: Path) -> BoardData:
    from cmdplab.report.board import write_board_page
    from cmdplab.studies.board_table import gather_board

    data = gather_board(folder, out)
    write_board_page(data, out)
    said = data.troubles
    for each in said[:MOST_TROUBLES]:
        warn(each)
    if said:
        more = f", {len(said) - MOST_TROUBLES} more" if len(said) > MOST_TROUBLES else ""
        warn(f"{len(said)} rows are not whole and not shown{more}; the page names them")
    return data


def _answer(
    out: Path, data: BoardData | None, missing: int, last: str = "", code: int = 0
) -> Answer:
    from cmdplab.report.board import PAGE, terminal_table

    found: dict[str, Any] = {"folder": str(out), "page": None, "rows": 0, "missing": missing}
    found["troubles"] = []
    if data is not None:
        page = str(out / PAGE)
        found |= {"page": page, "rows": len(data.rows), "troubles": data.troubles}

    def show() -> None:
        if data is None:
            return
        over = "medians over problems all lines have, % of H"
        print_table(f"{data.folder}: {len(data.rows)} rows; {over}", *terminal_table(data), left=4)
        print_note(
            f"in regret, in violation: problems with less, with more than {data.reference}, and "
            "those where neither can be claimed. ~ from outside; * unverified constants; ° no "
            "guarantee as run; ² plans anew when visits have doubled"
        )
        print_line(found["page"], soft_wrap=True)

    return Answer("board", found, show, last, code)
