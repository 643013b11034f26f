"""Python functions whose products are rounded by themselves on a GPU, as they are on a CPU.

A GPU makes one instruction, with one rounding, of a product and the sum it is added to, and Numba
has no option against that. Where an argmax follows, that bit may become another action. So the same
source is compiled again with every a * b as a call of `product`, which is never fused.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from numba.extending import register_jitable

from cmdplab.engines.gpu_setup import simulated


def _plain(a: Any, b: Any) -> Any:
    """a b, in the simulator."""
    return a * b


def _device() -> Any:
    rounded = importlib.import_module("numba.cuda.libdevice").dmul_rn

    @register_jitable  # type: ignore[untyped-decorator]
    def product(a: Any, b: Any) -> Any:
        """a b of doubles, rounded before anything is added to it."""
        return rounded(a, b)

    return product


product = _plain if simulated() else _device()


class _Products(ast.NodeTransformer):
    """a * b -> product(a, b)."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mult):
            return node
        return ast.Call(ast.Name("product", ast.Load()), [node.left, node.right], [])


def unfused(function: Callable[..., Any], **names: Any) -> Callable[..., Any]:
    """The function for kernels, with products of doubles that are rounded by themselves.

    It may be one that was compiled for the CPU. `names` replace what it calls.
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
