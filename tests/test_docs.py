"""What the documents show is run, and what they point to exists."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import subprocess

import pytest
from conftest import ROOT

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
RUN = [
    "README.md",
    "docs/add-an-algorithm.md",
    "docs/budgets.md",
    "docs/learn-live.md",
    "docs/which-algorithm.md",
    "docs/policies.md",
    "docs/python.md",
    "docs/sensitivity.md",
]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def run_blocks(text: str) -> str:
    printed, names = io.StringIO(), {}
    with contextlib.redirect_stdout(printed):
        for block in blocks(text, "python"):
            exec(compile(block, "documentation", "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("page", RUN)
def test_documented_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_blocks((ROOT / page).read_text())


def test_the_readme_shows_what_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text()
    shown = blocks(text, "text")[0].splitlines()
    printed = run_blocks(text).splitlines()
    # The certificate is rounding, and rounding depends on the machine.
    assert [re.sub(r"\de-\d\d", "", line) for line in shown] == [
        re.sub(r"\de-\d\d", "", line) for line in printed[: len(shown)]
    ]


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
@pytest.mark.slow
def test_examples_run(example, capsys, monkeypatch):
    monkeypatch.setenv("EPISODES", "200")  # the live ones take minutes in earnest
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples" / "textbook").glob("*.py")), ids=lambda p: p.name
)
def test_textbook_problems_have_the_values_of_books_closed_forms_and_programs(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    lines = re.findall(
        r"(-?\d+\.\d{8})\s+(?:closed form|linear program|published)\s+(-?\d+\.\d{8})",
        capsys.readouterr().out,
    )
    assert len(lines) >= 3
    for ours, theirs in lines:
        assert float(ours) == pytest.approx(float(theirs), abs=2e-8)
    page = (ROOT / "docs" / "textbook.md").read_text()
    assert f"`examples/textbook/{example.name}`" in page
    for ours, _ in lines:  # the page shows what the script prints, to six digits
        assert f"{float(ours):.6g}" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    prose = re.sub(r"`[^`]*`", "", page.read_text())  # code may look like a link
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", prose):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


def test_documents_name_tests_that_exist():
    text = (ROOT / "docs" / "equations.md").read_text()
    for file, name in re.findall(r"(tests/[\w/]+\.py)::(\w+)", text):
        assert f"def {name}(" in (ROOT / file).read_text(), f"{file}::{name}"


def test_the_package_carries_its_data_and_types(tmp_path):
    import sys
    import zipfile

    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "cmdplab/data/published.npz" in names
    assert "cmdplab/py.typed" in names
    assert not any(name.startswith("tests") for name in names)
