"""Facts about the package: one order of imports, budgets of lines, and quick starts."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from conftest import ROOT

import cmdplab

PACKAGE = ROOT / "src" / "cmdplab"

# A subpackage imports from the subpackages before it. The modules of the root count as such.
ORDER = (
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


def subpackage(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def test_every_module_belongs_to_a_subpackage_of_the_order():
    assert {subpackage(each) for each in MODULES} - {""} == set(ORDER)


def test_a_subpackage_imports_only_from_the_subpackages_before_it():
    # The package itself holds the version, and nothing that is loaded on import.
    pairs = [(a, b) for a in MODULES if a != "cmdplab" for b in imported(a) if subpackage(b)]
    places = {(a, b): (ORDER.index(subpackage(a)), ORDER.index(subpackage(b))) for a, b in pairs}
    assert [pair for pair, (importer, found) in places.items() if found > importer] == []


def test_no_two_modules_import_each_other_even_indirectly():
    graph = {each: imported(each) - {each, "cmdplab"} for each in MODULES}
    done: set[str] = set()
    while ready := {each for each in graph if each not in done and graph[each] <= done}:
        done |= ready
    assert set(graph) - done == set()


def test_a_folder_has_at_most_sixteen_modules():
    folders = {file.parent for file in MODULES.values()}
    sizes = {str(each.relative_to(PACKAGE)): len([*each.glob("*.py")]) for each in folders}
    assert sizes.pop(".") <= 8
    crowded = {name: n for name, n in sizes.items() if n > 16 and name not in LISTS_OF_EQUALS}
    assert crowded == {}


# Subpackages by their job, and the most lines that each group may have. A feature is paid for by a
# deletion: these numbers only fall. The goal is 2,200, 13,000, 14,000, 10,000 and 1,800.
GROUPS = {
    "base": ("", "display", "files", "numerics"),
    "model": ("cmdp", "environments", "formats", "policies", "solvers"),
    "learn": ("algorithms", "engines", "experiments", "live"),
    "lab": (
        *("audit", "figures", "gym", "measures", "report", "statistics", "studies", "testing"),
        "theory",
    ),
    "cli": ("cli",),
}
BUDGETS = {"base": 2750, "model": 15700, "learn": 18650, "lab": 8900, "cli": 2350}
MOST_MODULES = 285


def test_no_group_of_subpackages_outgrows_its_budget():
    folders = {each.name for each in PACKAGE.iterdir() if any(each.glob("*.py"))}
    assert {each for group in GROUPS.values() for each in group} - {""} == folders
    lines = {name: len(file.read_text().splitlines()) for name, file in MODULES.items()}
    homes = {name: subpackage(name) if subpackage(name) in folders else "" for name in lines}
    sums = {
        group: sum(n for name, n in lines.items() if homes[name] in parts)
        for group, parts in GROUPS.items()
    }
    assert {group: n for group, n in sums.items() if n > BUDGETS[group]} == {}
    assert len(MODULES) <= MOST_MODULES


def test_every_subpackage_has_a_docstring():
    for file in PACKAGE.rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(file.read_text())) or ""
        assert len(text) > 60, file


NO_BEGINNING = ("What", "Whether", "How", "Of", "The", "A", "An", "So", "As", "Where", "If")


def test_docstrings_of_functions_begin_with_a_verb():
    # The linter knows many wrong beginnings (D401), and these are others. Properties are nouns.
    wrong = []
    for name, file in MODULES.items():
        functions = ast.walk(ast.parse(file.read_text()))
        for node in (each for each in functions if isinstance(each, ast.FunctionDef)):
            text, kinds = ast.get_docstring(node), map(ast.unparse, node.decorator_list)
            if text and text.split()[0] in NO_BEGINNING and "property" not in " ".join(kinds):
                wrong.append(f"{name}: {node.name}")
    assert wrong == []


def test_the_design_has_a_line_for_every_subpackage_in_their_order():
    tree = (ROOT / "docs" / "design.md").read_text().split("```text\nsrc/cmdplab/\n")[1]
    lines = [line.split() for line in tree.split("```")[0].splitlines()]
    folders = [each[0].rstrip("/") for each in lines if each[0].endswith("/")]
    assert folders == [each for each in ORDER if (PACKAGE / each).is_dir()]


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


def test_no_compiler_is_loaded_before_the_first_call_of_a_compiled_function():
    every = "cmdplab.engines.families, cmdplab.solvers, cmdplab.experiments.run"
    assert loaded_by(f"import {every}") & {"numba", "llvmlite"} == set()


def test_help_loads_no_arrays():
    call = "sys.argv = ['cmdplab', '--help']\ntry: cmdplab.cli.main()\nexcept SystemExit: pass"
    code = f"import cmdplab.cli; {call}"
    assert loaded_by(f"exec({code!r})") & {*HEAVY, "numpy"} == set()


def test_every_public_name_is_reached_from_the_package():
    for name in cmdplab.__all__:
        assert getattr(cmdplab, name) is not None
