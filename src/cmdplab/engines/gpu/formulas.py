"""The formulas of equations.py on a card, in the precision of a kernel and rounded as on a CPU."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numba.extending import register_jitable

from cmdplab.algorithms import equations
from cmdplab.engines.gpu.device import simulated


@cache
def formulas(real: Any) -> SimpleNamespace:
    """Return every function of equations.py by name, with literals of the type `real`."""
    plain = equations.formulas()
    if real is np.float64:
        return SimpleNamespace(**plain)
    names: dict[str, Any] = dict(vars(equations))
    for name, function in plain.items():
        names[name] = register_jitable(_with_literals(function, real, names))
    return SimpleNamespace(**{name: names[name] for name in plain})


def _with_literals(function: FunctionType, real: Any, names: dict[str, Any]) -> FunctionType:
    """Return a copy of the function with literals of the type `real` and `names` as its globals."""
    code = function.__code__
    literals = tuple(real(each) if isinstance(each, float) else each for each in code.co_consts)
    return FunctionType(code.replace(co_consts=literals), names, function.__name__)


def _plain(a: Any, b: Any) -> Any:
    return a * b


def _device() -> Any:
    rounded = importlib.import_module("numba.cuda.libdevice").dmul_rn

    @register_jitable  # type: ignore[untyped-decorator]
    def product(a: Any, b: Any) -> Any:
        return rounded(a, b)

    return product


product = _plain if simulated() else _device()


class _Products(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mult):
            return node
        return ast.Call(ast.Name("product", ast.Load()), [node.left, node.right], [])


def unfused(function: Callable[..., Any], **names: Any) -> Callable[..., Any]:
    """Return a copy of a function for kernels that rounds each product of doubles separately.

    The function may be compiled for the CPU. `names` replace globals of the function.
    """
    plain = getattr(function, "py_func", function)
    tree = ast.parse(textwrap.dedent(inspect.getsource(plain)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    scope = {**plain.__globals__, **names, "product": product}
    code = compile(ast.fix_missing_locations(_Products().visit(tree)), __file__, "exec")
    exec(code, scope)
    ready: Callable[..., Any] = register_jitable(error_model="numpy")(scope[plain.__name__])
    return ready
