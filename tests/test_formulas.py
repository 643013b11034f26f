"""A formula stands once: docs/equations.md names its function, and the sources say who calls it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT

from cmdplab.algorithms import equations
from cmdplab.algorithms.families import planner, safe, softmax_search, triple_q, unconstrained
from cmdplab.cmdp import exact

PACKAGE = ROOT / "src" / "cmdplab"
PAGE = (ROOT / "docs" / "equations.md").read_text()
SOURCES = {file.relative_to(PACKAGE): ast.parse(file.read_text()) for file in PACKAGE.rglob("*.py")}

# The scalar steps that engines, theory and measures share, and where they stand.
FAMILIES = "algorithms/families"
SHARED = {
    **dict.fromkeys(equations.formulas(), "algorithms/equations.py"),
    **{
        each.__name__: f"{FAMILIES}/{module.__name__.split('.')[-1]}.py"
        for module in (planner, safe, unconstrained, softmax_search)
        for each in module.FORMULAS
    },
    **{f"triple_q.{each.__name__}": f"{FAMILIES}/triple_q.py" for each in triple_q.FORMULAS},
    **{each.__name__: "cmdp/exact.py" for each in (exact.gap, exact.violation)},
}


def named_on_the_page() -> set[tuple[str, str]]:
    """(file, name) of each function in a table; a section may name the file of the rest."""
    found = set()
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        lines = section.splitlines()
        prose = " ".join(line for line in lines if not line.startswith("|"))
        usual = re.findall(r"`([\w/]+\.py)`", prose)
        columns: list[str] = []
        for line in lines:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if "function" in cells:
                columns = cells
            elif columns and len(cells) == len(columns) and not set(line) <= set("|-"):
                for entry in re.findall(r"`([^`]+)`", cells[columns.index("function")]):
                    file, _, names = entry.rpartition(": ")
                    if names.endswith(".py"):
                        found.add((names, ""))
                        continue
                    found |= {(file or (usual or ["?"])[0], name) for name in names.split(", ")}
    return found


def defined(tree: ast.AST, name: str) -> int:
    """How often a module, or a class of it, binds a name; `Class.name` asks in that class."""
    scope, _, last = name.rpartition(".")
    if scope:
        tree = next(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == scope)
    count = 0
    for node in tree.body:  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            count += node.name == last
        elif isinstance(node, ast.Assign):
            count += sum(isinstance(t, ast.Name) and t.id == last for t in node.targets)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            count += node.target.id == last
    return count


@pytest.mark.parametrize("named", sorted(named_on_the_page()), ids=": ".join)
def test_what_the_page_names_is_defined_there_and_once(named):
    file, name = named
    assert Path(file) in SOURCES
    assert not name or defined(SOURCES[Path(file)], name) == 1


def module_of(path: str) -> str:
    return "cmdplab." + path.removesuffix(".py").replace("/", ".")


def bound(tree: ast.Module) -> tuple[dict[str, str], dict[str, str]]:
    """What a module imports of ours: names of modules, and names out of modules."""
    modules, names = {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                full = f"{node.module}.{each.name}"
                place = Path(*full.split(".")[1:]).with_suffix(".py")
                (modules if place in SOURCES else names)[each.asname or each.name] = full
    return modules, names


@cache
def called_in(tree: ast.Module) -> set[str]:
    """Every name of another module of ours that is read in this one, as `cmdplab.module.name`."""
    modules, names = bound(tree)
    on_card = "cmdplab.engines.gpu.formulas.formulas" in names.values()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            found.add(names[node.id])
        elif isinstance(node, ast.Attribute):
            base = node.value
            if isinstance(base, ast.Name) and base.id in modules:
                found.add(f"{modules[base.id]}.{node.attr}")
            elif on_card and ast.unparse(base) in ("eq", "formulas(real)"):
                found.add(f"cmdplab.algorithms.equations.{node.attr}")
    return found


def callers(name: str) -> list[str]:
    """The files that read a shared formula, its own if another function there does."""
    file, last = SHARED[name], name.rpartition(".")[2]
    full = f"{module_of(file)}.{last}"
    own = [
        node
        for node in ast.walk(SOURCES[Path(file)])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == last
    ]
    found = [str(path) for path, tree in SOURCES.items() if full in called_in(tree)]
    return sorted(found + [file] * bool(own))


def listed() -> dict[str, list[str]]:
    """The page's list of who calls each shared formula."""
    rows = re.findall(r"^\| `([\w.]+)` \| ((?:`[\w/.]+`(?:, )?)+) \|$", PAGE, flags=re.MULTILINE)
    return {name: re.findall(r"`([\w/.]+)`", files) for name, files in rows}


@pytest.mark.parametrize("name", SHARED)
def test_the_page_lists_who_calls_a_formula(name):
    assert callers(name), f"nobody calls {name}: is it typed again somewhere?"
    assert listed()[name] == callers(name)


OPERATIONS = ast.BinOp | ast.BoolOp | ast.Compare | ast.Call | ast.IfExp | ast.UnaryOp | ast.Tuple


def shape(node: ast.AST) -> str:
    """An expression with every variable as v, whatever the order of its sums and products."""
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.BinOp):
        sides = [shape(node.left), shape(node.right)]
        if isinstance(node.op, ast.Add | ast.Mult):
            sides.sort()
        return f"({sides[0]} {type(node.op).__name__} {sides[1]})"
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func).rpartition(".")[2]
        return f"{called}({', '.join(map(shape, node.args))})"
    if isinstance(node, OPERATIONS):
        parts = [shape(each) for each in ast.iter_child_nodes(node) if not is_operator(each)]
        return f"{type(node).__name__}({', '.join(parts)})"
    return "v"


def is_operator(node: ast.AST) -> bool:
    return isinstance(node, ast.operator | ast.boolop | ast.cmpop | ast.unaryop | ast.expr_context)


def operations(node: ast.AST) -> int:
    return sum(isinstance(each, OPERATIONS) for each in ast.walk(node))


def returned(name: str) -> ast.expr:
    """What a formula returns last: the expression of its equation."""
    tree, last = SOURCES[Path(SHARED[name])], name.rpartition(".")[2]
    body = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == last)
    return [n.value for n in ast.walk(body) if isinstance(n, ast.Return) and n.value][-1]


# (1 - t) a + t b is an operation, not an equation of somebody. They differ in how they are
# compiled: the last is exactly a or b for t = 0 and 1, which reordered sums would not be.
MIXTURES = ("mixed_policy", "mixed_value", "triple_q.blend")
LONG_ENOUGH = {
    name: returned(name)
    for name in SHARED
    if operations(returned(name)) >= 4 and name not in MIXTURES
}


def test_most_formulas_are_long_enough_to_be_known_again():
    assert len(LONG_ENOUGH) >= 12


@cache
def where_typed() -> dict[str, list[str]]:
    """Where each expression of the sources stands, whatever its variables are called."""
    found: dict[str, list[str]] = {}
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, OPERATIONS):
                found.setdefault(shape(node), []).append(f"{path}:{node.lineno}")
    return found


@pytest.mark.parametrize("name", LONG_ENOUGH)
def test_a_formula_is_not_typed_again(name):
    wanted = shape(LONG_ENOUGH[name])
    again = where_typed()[wanted]
    assert len(again) == 1, again
