"""`cmdplab board`: every algorithm on every fixed problem, and the page about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cmdplab.cli.options import command, find_here, split
from cmdplab.cli.output import (
    Answer,
    errors,
    print_line,
    print_note,
    print_table,
    printing_aside,
    warn,
)

MOST_TROUBLES = 20  # in a terminal; the page has all


@command()
def board_command(
    out: Path = Path("runs/board"),
    algorithms: list[str] | None = None,
    problems: list[str] | None = None,
    steps: int | None = None,
    seeds: int | None = None,
    workers: int | None = None,
    keep_records: bool = False,
    page: Path | None = None,
) -> Answer:
    """Run the board: tune every algorithm, then play theory and tuned lines on every problem.

    The protocol is in docs/howto/board.md. Interrupted at any moment, the same command goes on; a
    board that is there gets what is missing, so that a new algorithm is a new line.

    Ends by writing the page: board.html, with board.csv, board.parquet and board.md beside it. A
    row with a run missing or failed is not shown: page and terminal name it. Where no row is whole,
    nothing is written and the exit code is 2.
    """
    from cmdplab.algorithms import is_outside
    from cmdplab.experiments.play import check_workers
    from cmdplab.experiments.progress import sweep_shown
    from cmdplab.studies.board import entered, named, places_named
    from cmdplab.studies.board_runs import play

    if page is not None:
        return _page(out, page)
    check_workers(workers)
    find_here(split(algorithms))
    with printing_aside():
        names = [name for each in split(algorithms) for name in named(each)]
        places = places_named(split(problems))
        left = play(
            out,
            entered(out, steps, seeds, names, places),
            workers,
            names=names,
            places=places,
            keep=keep_records,
            shown=lambda works: sweep_shown(works, errors()),
        )
    failed, last, code = [row for row in left.lacking if row.failed], "", 0
    if failed:
        runs = sum(row.failed for row in failed)
        last = f"warning: {runs} runs failed; the same command tries them again"
        code = 2 if all(is_outside(row.algorithm) for row in failed) else 1
    elif left.untuned or left.lacking:
        tuning = f" and the tuning of {len(left.untuned)} algorithms" if left.untuned else ""
        last = f"{left.missing} runs{tuning} are missing; go on with the same command"
        code = 130
    if not left.untuned and not any(row.missing for row in left.lacking):
        answer = _page(out, out)
        return answer._replace(value=answer.value | {"missing": left.missing}, last=last, code=code)
    for row in failed[:MOST_TROUBLES]:
        warn(row.words)
    found: dict[str, Any] = {"folder": str(out), "page": None, "rows": 0, "troubles": []}
    found["missing"] = left.missing
    return Answer("board", found, lambda: None, last, code)


def _page(folder: Path, out: Path) -> Answer:
    from cmdplab.studies.board_table import (
        PAGE,
        SHOWN,
        WORDS,
        gather_board,
        summary_table,
        write_board_page,
    )

    data = gather_board(folder, out)
    write_board_page(data, out)
    said, page = data["troubles"], str(out / PAGE)
    for each in said[:MOST_TROUBLES]:
        warn(each)
    if said:
        more = f", {len(said) - MOST_TROUBLES} more" if len(said) > MOST_TROUBLES else ""
        warn(f"{len(said)} rows are not whole and not shown{more}; the page names them")

    def show() -> None:
        over = "medians over problems all lines have, % of H"
        title = f"{data['folder']}: {len(data['rows'])} rows; {over}"
        header, *rows = (each[:SHOWN] for each in summary_table(data))
        print_table(title, [each.removesuffix(" (%)") for each in header], rows, left=WORDS)
        print_note(
            f"in regret, in violation: problems with less, with more than {data['reference']}, and "
            "those where neither can be claimed. ~ from outside; * unverified constants; ° no "
            "guarantee as run; ² plans anew when visits have doubled"
        )
        print_line(page, soft_wrap=True)

    found = {"folder": str(out), "page": page, "rows": len(data["rows"])}
    return Answer("board", found | {"missing": data["missing"], "troubles": said}, show)
