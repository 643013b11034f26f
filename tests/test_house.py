"""The house: rooms with one job each, imports that point one way, formulas that stand once."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from conftest import ROOT

import cmdplab

PACKAGE = ROOT / "src" / "cmdplab"

# A room imports from the rooms before it. The root's own modules are rooms too.
ROOMS = (
    "errors",
    "plugins",
    "settings",
    "types",
    "messages",
    "display",
    "checks",
    "files",
    "numerics",
    "cmdp",
    "statistics",
    "solvers",
    "policies",
    "algorithms",
    "environments",
    "formats",
    "measures",
    "engines",
    "theory",
    "experiments",
    "figures",
    "audit",
    "report",
    "studies",
    "live",
    "gym",
    "testing",
    "cli",
    "__main__",
)
LISTS_OF_EQUALS = ("algorithms", "environments")


def module_name(file: Path) -> str:
    parts = ["cmdplab", *file.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in sorted(PACKAGE.rglob("*.py"))}


def imported(module: str) -> set[str]:
    """Every module of ours that a module imports, lazily or for its types included."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text())):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{module} imports relatively"
            named = {f"{node.module}.{each.name}" for each in node.names}
            found |= {each if each in MODULES else node.module for each in named}
    return {each for each in found if each in MODULES}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_module_lives_in_a_room():
    assert {room(each) for each in MODULES} - {""} == set(ROOMS)


def test_a_room_imports_only_from_the_rooms_before_it():
    # The package itself holds the version, and nothing that is loaded on import.
    pairs = [(a, b) for a in MODULES if a != "cmdplab" for b in imported(a) if room(b)]
    assert [(a, b) for a, b in pairs if ROOMS.index(room(b)) > ROOMS.index(room(a))] == []


def test_no_two_modules_import_each_other_even_indirectly():
    graph = {each: imported(each) - {each, "cmdplab"} for each in MODULES}
    done: set[str] = set()
    while ready := {each for each in graph if each not in done and graph[each] <= done}:
        done |= ready
    assert set(graph) - done == set()


def test_rooms_are_small_enough_to_look_around_in():
    folders = {file.parent for file in MODULES.values()}
    sizes = {str(each.relative_to(PACKAGE)): len([*each.glob("*.py")]) for each in folders}
    assert sizes.pop(".") <= 8
    crowded = {name: n for name, n in sizes.items() if n > 16 and name not in LISTS_OF_EQUALS}
    assert crowded == {}


def test_every_room_says_what_belongs_there():
    for file in PACKAGE.rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(file.read_text())) or ""
        assert len(text) > 60, file


def test_the_design_has_a_line_for_every_room_in_their_order():
    tree = (ROOT / "docs" / "design.md").read_text().split("```text\nsrc/cmdplab/\n")[1]
    lines = [line.split() for line in tree.split("```")[0].splitlines()]
    folders = [each[0].rstrip("/") for each in lines if each[0].endswith("/")]
    assert folders == [each for each in ROOMS if (PACKAGE / each).is_dir()]


def loaded_by(code: str) -> set[str]:
    """The top-level modules that are loaded after some code has run in a fresh process."""
    program = f"import sys; {code}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split("\n")[-2].split())


HEAVY = {"numba", "scipy", "matplotlib", "pyarrow", "pydantic", "gymnasium", "pandas"}


def test_importing_the_package_loads_nothing_else():
    assert loaded_by("import cmdplab") & {*HEAVY, "numpy", "rich", "typer"} == set()


def test_measures_need_no_compiler():
    assert loaded_by("import cmdplab.measures") & HEAVY == set()


def test_help_loads_no_arrays():
    call = "sys.argv = ['cmdplab', '--help']\ntry: cmdplab.cli.main()\nexcept SystemExit: pass"
    code = f"import cmdplab.cli; {call}"
    assert loaded_by(f"exec({code!r})") & {*HEAVY, "numpy"} == set()


def test_every_public_name_and_room_is_reached_from_the_package():
    for name in cmdplab.__all__:
        assert getattr(cmdplab, name) is not None
