"""Figures from records: every kind in every format, and what they refuse."""

from __future__ import annotations

import pytest

from cmdplab.compare import Comparison, compare
from cmdplab.plots import KINDS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("plots")
    names = ("UOpt-RPGPD", "No-regularization", "OptCMDP")
    compare(Comparison(problem="three-state", episodes=300, seeds=2, algorithms=names, out=out))
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_every_format(call, folder, kind, tmp_path):
    for suffix in ("png", "pdf", "svg"):
        path = tmp_path / f"f.{suffix}"
        code, out, _ = call("plot", folder, kind, "--out", path)
        assert (code, out.strip()) == (0, str(path))
        assert path.stat().st_size > 3000
    code, out, _ = call("plot", folder, kind)
    assert (code, (folder / f"{kind}.pdf").exists()) == (0, True)


def test_what_cannot_be_drawn(call, folder, tmp_path):
    for arguments, sentence in (
        ((folder, "birds"), "choose one of gap, violation"),
        ((folder, "gap", "--out", tmp_path / "f.txt"), "is no .png"),
        ((tmp_path, "gap"), "has no curves.parquet"),
    ):
        code, _, err = call("plot", *arguments)
        assert (code, sentence in err) == (2, True)
