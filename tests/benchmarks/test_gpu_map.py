"""The heat maps of benchmarks/gpu_map.py at toy size, on the CPU engine."""

from __future__ import annotations

import gpu_map
import numpy as np
import pytest
from oracles import session

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.task import Task
from cmdplab.environments import make
from cmdplab.errors import InputError
from cmdplab.solvers import solve_feasible

TOY = ["--engine", "cpu", "--side", "3", "--seeds", "2", "--piece", "5", "--environment"]
TOY += ["media-streaming", "--episodes"]


def test_the_outline_is_the_region_of_the_theorem():
    axes, row = gpu_map.MAPS["exponents"], algorithm("UOpt-RPGPD", "printed")
    (low, _), (_, high), (end, _) = axes.corners
    for setting in gpu_map.settings(axes, row, 16):
        eta, tau = setting.policy_step.exponent, setting.temperature.exponent
        inside = eta > low and 0.0 < tau < high and eta / end + tau < 1.0
        assert inside == (not setting.outside_theorem())


@pytest.mark.parametrize("name", gpu_map.MAPS)
@pytest.mark.slow
def test_a_map_is_made_in_pieces_and_goes_on_where_it_stopped(name, tmp_path):
    gpu_map.main([name, *TOY, "50", "--out", str(tmp_path)])
    pieces = sorted(tmp_path.glob("piece-*.npz"))
    assert len(pieces) == 2
    before = [each.stat().st_mtime_ns for each in pieces]
    table = gpu_map.gathered(tmp_path, 3)
    pieces[1].unlink()
    with pytest.raises(InputError, match="holds 5 of 9 settings"):
        gpu_map.gathered(tmp_path, 3)
    gpu_map.main([name, *TOY, "50", "--out", str(tmp_path)])
    assert pieces[0].stat().st_mtime_ns == before[0]
    np.testing.assert_array_equal(gpu_map.gathered(tmp_path, 3), table)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="belongs to a map of other sizes"):
        gpu_map.main([name, *TOY, "60", "--out", str(tmp_path)])


def test_a_cell_is_the_median_of_its_runs(tmp_path):
    gpu_map.main(["exponents", *TOY, "50", "--out", str(tmp_path), "--run"])
    problem = make("media-streaming")
    solution = solve_feasible(problem)
    row = algorithm("UOpt-RPGPD", "released").with_exponents(5 / 6, 1 / 6)
    task = Task.of(problem, solution.slater_gap)
    gaps = [
        solution.value - session("cpu", problem, row, task, seed).play(50).returns[-1, 0]
        for seed in (0, 1)
    ]
    assert gpu_map.gathered(tmp_path, 3)[2, 0, 0] == pytest.approx(np.median(gaps), abs=1e-12)


def test_a_signed_map_has_zero_in_the_middle_and_says_what_its_signs_are(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    table = np.zeros((3, 3, 4))
    table[..., :2] = np.linspace(-0.2, 3.0, 9).reshape(3, 3, 1)
    table[..., 2:] = 10.0
    monkeypatch.setattr(gpu_map, "gathered", lambda folder, side: table)
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: drawn.append(figure))
    for name in gpu_map.MAPS:
        gpu_map.draw(name, tmp_path, 3, "title")
    for figure in drawn:
        panels = [axes for axes in figure.axes if axes.get_title()]
        bars = [axes for axes in figure.axes if not axes.get_title()]
        assert [bar.get_ylabel() for bar in bars] == list(gpu_map.SCALES)
        for panel, signed in zip(panels, gpu_map.SIGNED, strict=True):
            norm = panel.collections[0].norm
            assert (norm.vmin == -norm.vmax) == signed
            if signed:
                assert float(norm(0.0)) == pytest.approx(0.5)
                assert norm(-0.2) < 0.5 < norm(0.2)
                (cells,) = (each for each in panel.collections if each.get_hatch() == "///")
                assert len(cells.get_paths()) == int((table[..., 0] < -gpu_map.LINEAR).sum())
        (legend,) = figure.legends
        assert "heorem" in legend.get_texts()[0].get_text()
        assert "paid for by a violation" in figure.get_suptitle()
