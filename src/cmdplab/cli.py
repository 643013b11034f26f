"""The command line. Every command is thin: it reads arguments, calls the library, prints.

Heavy modules are imported inside the commands, so that `cmdplab --help` answers at once.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmdplab import __version__
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from cmdplab.running import Run

app = typer.Typer(
    help=(
        "A laboratory for online constrained MDPs: certified optima, exact measurements, fast "
        "learners. Start with [bold]cmdplab reproduce[/bold], which redraws the figure of "
        "Kitamura et al. (2024) in about two minutes."
    ),
    epilog="Every command that prints numbers takes --json. Bad input exits with code 2.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


class Preset(StrEnum):
    """Two readings of the paper: docs/deviations.md."""

    released = "released"
    printed = "printed"


class Instance(StrEnum):
    """Which CMDP `reproduce` runs on."""

    published = "published"
    random = "random"


class Listing(StrEnum):
    """What `list` lists."""

    algorithms = "algorithms"
    environments = "environments"


class Engine(StrEnum):
    """Compiled, or plain Python."""

    cpu = "cpu"
    host = "host"


Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
ProblemArgument = Annotated[
    str, typer.Argument(help="A .npz file, or an environment: see `cmdplab list environments`.")
]
InstanceSeed = Annotated[int, typer.Option(help="Which instance of a random environment.")]
BonusScale = Annotated[
    float, typer.Option(help="Factor on every exploration bonus; 1 is the theory.")
]
PresetOption = Annotated[
    Preset, typer.Option(help="The authors' notebook, or the formulas as the paper prints them.")
]
Workers = Annotated[int | None, typer.Option(help="Runs at once; default: one per core.")]


def _console() -> Console:
    from rich.console import Console

    return Console()


def _errors() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _print_json(value: Any) -> None:
    from cmdplab.presenting import to_json

    print(to_json(value))


@app.command("reproduce")
def reproduce_command(
    preset: PresetOption = Preset.released,
    episodes: Annotated[int, typer.Option(help="Episodes of each run.")] = 300_000,
    seeds: Annotated[int, typer.Option(help="Runs of each algorithm: seeds 0, 1, ...")] = 5,
    instance: Annotated[
        Instance | None,
        typer.Option(help="Default: published for --preset released, random for printed."),
    ] = None,
    instance_seed: InstanceSeed = 0,
    bonus_scale: BonusScale = 1e-3,
    algorithm: Annotated[
        list[str] | None, typer.Option(help="Only this one (repeat for more); default: all five.")
    ] = None,
    workers: Workers = None,
    out: Annotated[Path, typer.Option(help="Where the results go.")] = Path("runs/figure1"),
    as_json: Json = False,
) -> None:
    """Redraw the paper's Figure 1: five algorithms on one CMDP.

    Writes figure1.png, figure1.pdf, curves.parquet and summary.json, and prints a table that says
    what converged, what oscillates and by how much.
    """
    from cmdplab.algorithms import FIGURE_1
    from cmdplab.progress import shown
    from cmdplab.reproduce import Reproduction, reproduce

    settings = Reproduction(
        preset=preset.value,
        instance=_instance(instance, preset),
        instance_seed=instance_seed,
        episodes=episodes,
        seeds=seeds,
        bonus_scale=bonus_scale,
        algorithms=tuple(algorithm or FIGURE_1),
        out=out,
    )
    with shown(settings.jobs(), episodes, _errors()) as progress:
        runs, summary = reproduce(settings, progress, workers)
    if as_json:
        _print_json(summary)
        return
    _print_runs(runs, f"{summary['instance']}, preset {preset.value}: medians over {seeds} seeds")
    _console().print(f"figure, curves and summary are in {out}/", highlight=False)


def _instance(instance: Instance | None, preset: Preset) -> str:
    if instance is not None:
        return instance.value
    return "published" if preset is Preset.released else "random"


def _print_runs(runs: list[Run], title: str) -> None:
    import numpy as np

    from cmdplab.presenting import grid, number
    from cmdplab.verdict import verdict

    header = ["algorithm", "verdict", "gap", "viol.", "std", "regret+", "us"]
    rows = []
    for name in dict.fromkeys(run.algorithm.name for run in runs):
        mine = [run for run in runs if run.algorithm.name == name]
        horizon = mine[0].state.policy.shape[0]

        def middle(field: str, mine: list[Run] = mine) -> float | None:
            values = [getattr(run.summary, field) for run in mine]
            return None if values[0] is None else float(np.median(values))

        speed = float(np.median([run.us_per_episode for run in mine]))
        cells = [number(middle(f)) for f in ("final_gap", "final_violation", "tail_std")]
        words = verdict(mine[0].curves, horizon)
        rows.append([name, words, *cells, number(middle("strong_regret"), 0), number(speed, 1)])
    grid(_console(), title, header, rows, left=2)
    _console().print(
        "gap and violation of the last episode; std of the gap over the last 10,000; "
        "regret+: sum of positive gaps; us per episode, measures included; verdict on seed 0",
        style="dim",
        highlight=False,
    )


@app.command("run")
def run_command(
    problem: ProblemArgument = "published",
    algorithm: Annotated[str, typer.Option(help="See `cmdplab list algorithms`.")] = "UOpt-RPGPD",
    preset: PresetOption = Preset.released,
    episodes: Annotated[int, typer.Option(help="How many episodes.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the roll-outs.")] = 0,
    instance_seed: InstanceSeed = 0,
    bonus_scale: BonusScale = 1e-3,
    alpha_eta: Annotated[
        float | None, typer.Option(help="Exponent of the step size, in (0, 1].")
    ] = None,
    alpha_tau: Annotated[
        float | None, typer.Option(help="Exponent of the temperature, in (0, 1].")
    ] = None,
    engine: Annotated[Engine, typer.Option(help="Compiled, or plain Python.")] = Engine.cpu,
    out: Annotated[
        Path | None, typer.Option(help="Write curves.parquet and summary.json there.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let one algorithm learn one problem, measuring every episode exactly."""
    from dataclasses import replace

    from cmdplab import algorithms, environments, running
    from cmdplab.files import writable_folder, written_whole
    from cmdplab.progress import shown
    from cmdplab.solvers import solve_feasible

    row = replace(algorithms.algorithm(algorithm, preset.value), bonus_scale=bonus_scale)
    row = row.with_exponents(alpha_eta, alpha_tau)
    if (alpha_eta, alpha_tau) != (None, None) and row.outside_theorem():
        _errors().print(f"warning: {row.outside_theorem()}", highlight=False, soft_wrap=True)
    running.check_counts(episodes, seed)
    cmdp = environments.load(problem, instance_seed)
    solution = solve_feasible(cmdp)
    if out is not None:
        writable_folder(out)
    with shown([running.Job(row, seed)], episodes, _errors()) as progress:
        done = running.run(
            cmdp,
            row,
            episodes,
            seed,
            engine=engine.value,
            solution=solution,
            progress=progress,
        )
    result = {
        "problem": cmdp.name,
        "algorithm": row.name,
        "preset": row.preset,
        "seed": seed,
        **done.summary._asdict(),
        "multiplier": done.state.multiplier,
        "us_per_episode": done.us_per_episode,
    }
    if out is not None:
        from cmdplab.presenting import to_json
        from cmdplab.records import write_curves

        write_curves([done], out / "curves.parquet")
        with written_whole(out / "summary.json") as temporary:
            temporary.write_text(to_json(result) + "\n")
    if as_json:
        _print_json(result)
    else:
        _print_runs([done], f"{cmdp.name}, preset {row.preset}, seed {seed}, {episodes:,} episodes")


@app.command("solve")
def solve_command(
    problem: ProblemArgument, instance_seed: InstanceSeed = 0, as_json: Json = False
) -> None:
    """The certified optimum of a problem: value, multipliers, Slater gap, primal and dual.

    An infeasible problem, or one without a Slater point, is an answer too: exit code 0 and
    feasible = false.
    """
    from cmdplab import environments
    from cmdplab.presenting import facts, number, numbers
    from cmdplab.solvers import solve

    cmdp = environments.load(problem, instance_seed)
    s = solve(cmdp)
    if as_json:
        fields = ("value", "multiplier", "slater_gap", "primal", "dual", "gap", "feasible")
        _print_json({f: getattr(s, f) for f in fields} | {"message": s.message})
        return
    rows = [("feasible", "yes" if s.feasible else f"no: {s.message}")]
    rows += [("value", number(s.value, 10)), ("multiplier", numbers(s.multiplier))]
    rows += [("Slater gap", number(s.slater_gap, 6))]
    rows += [("primal", number(s.primal, 10)), ("dual", number(s.dual, 10))]
    rows += [("certificate |dual - primal|", "–" if s.gap is None else f"{s.gap:.1e}")]
    facts(_console(), cmdp.name, rows)


@app.command("describe")
def describe_command(
    problem: ProblemArgument, instance_seed: InstanceSeed = 0, as_json: Json = False
) -> None:
    """What a problem is like: sizes, which constraints bind, what they cost, how much slack."""
    from cmdplab import environments
    from cmdplab.describing import describe
    from cmdplab.presenting import facts, number, numbers

    d = describe(environments.load(problem, instance_seed))
    if as_json:
        _print_json(d)
        return
    sizes = f"{d.states} states, {d.actions} actions, horizon {d.horizon}, start {d.start}"
    rows = [("sizes", sizes), ("constraints", str(d.constraints))]
    rows += [("thresholds", numbers(d.threshold, 4))]
    rows += [("largest utility", numbers(d.largest_utility, 4))]
    rows += [("feasible", "yes" if d.feasible else f"no: {d.message}")]
    rows += [("optimum", number(d.optimum, 6))]
    rows += [("without constraints", number(d.unconstrained_optimum, 6))]
    binding = [str(n + 1) for n, binds in enumerate(d.binding or []) if binds]
    rows += [("binding", ", ".join(binding) or "none"), ("multiplier", numbers(d.multiplier))]
    rows += [("Slater gap", number(d.slater_gap, 6))]
    facts(_console(), d.name, rows)


@app.command("list")
def list_command(
    what: Annotated[Listing, typer.Argument(help="What to list.")], as_json: Json = False
) -> None:
    """List the algorithms or the environments."""
    from cmdplab.listing import algorithms, environments
    from cmdplab.presenting import grid

    rows = algorithms() if what is Listing.algorithms else environments()
    if as_json:
        _print_json(rows)
        return
    header = list(rows[0])
    cells = [[", ".join(v) if isinstance(v, list) else str(v) for v in r.values()] for r in rows]
    grid(_console(), what.value, header, cells, left=len(header))


@app.command("verify-trace")
def verify_command(
    file: Annotated[Path, typer.Argument(help="A recorded trace: docs/records.md.")],
    as_json: Json = False,
) -> None:
    """Replay a recorded trace of the authors' notebook and print the largest differences."""
    from cmdplab.presenting import grid
    from cmdplab.trace import verify_trace

    found = verify_trace(file)
    if as_json:
        _print_json(found)
        return
    header = ["algorithm", "gap", "violation", "multiplier", "policy"]
    rows = [[name, *(f"{each:.1e}" for each in d)] for name, d in found.items()]
    grid(_console(), f"largest differences to {file.name}", header, rows)


@app.command("bench")
def bench_command(
    quick: Annotated[bool, typer.Option(help="Only the paper's size.")] = False,
    as_json: Json = False,
) -> None:
    """Microseconds per episode of each engine, then of the CPU engine over sizes.

    One core and float64, exact returns of every episode included; rows with two runs use two cores.
    """
    from cmdplab.bench import benchmark
    from cmdplab.presenting import grid

    timings = list(benchmark(quick))
    if as_json:
        _print_json(timings)
        return
    rows = [[str(v) for v in t[:-1]] + [f"{t.us_per_episode:.2f}"] for t in timings]
    header = ["engine", "algorithm", "X", "A", "H", "N", "runs", "us/episode"]
    grid(_console(), "time per episode", header, rows, left=2)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        print(f"cmdplab {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line: bad input is one sentence and exit code 2."""
    try:
        sys.exit(app(standalone_mode=False))
    except InputError as error:
        _fail(str(error), 2)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:
        # Typer's own complaints about arguments; its module for them depends on its version.
        if not hasattr(error, "format_message"):
            raise
        _fail(error.format_message(), 2)


def _fail(sentence: str, code: int) -> None:
    print(f"cmdplab: {sentence}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
