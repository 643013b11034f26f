"""What the documents show is run, and what they point to exists."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
from conftest import ROOT, in_one_process

import cmdplab
from cmdplab import cli

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PYTHON = re.compile(r"^```(?:\{code-cell\} )?python\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELL = re.compile(r"^```(?:sh|text)\n(.*?)^```|((?:^    cmdplab .*\n)+)", re.DOTALL | re.MULTILINE)
NOT_RUN = {"docs/gpu.md": "needs a card; `make test-gpu` runs the like of it"}
sys.path.append(str(ROOT / "docs" / "_ext"))


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


WITH_PYTHON = [name_of(page) for page in PAGES if PYTHON.search(page.read_text())]
NOTEBOOKS = [each for each in WITH_PYTHON if "file_format: mystnb" in (ROOT / each).read_text()]
RUN = [each for each in WITH_PYTHON if each not in NOTEBOOKS and each not in NOT_RUN]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def run_blocks(page: str) -> str:
    """Run the Python of a page, in order and in one namespace; an error has the page's lines."""
    text = (ROOT / page).read_text()
    printed, names = io.StringIO(), {"__name__": "__main__"}
    with contextlib.redirect_stdout(printed):
        for block in PYTHON.finditer(text):
            lines = ["" if each.startswith(":") else each for each in block[1].split("\n")]
            before = "\n" * text[: block.start(1)].count("\n")
            exec(compile(before + "\n".join(lines), str(ROOT / page), "exec"), names)
    return printed.getvalue()


@pytest.fixture
def without_a_screen():
    """Figures that are shown are drawn, and seen by nobody."""
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        yield
    pyplot.close("all")


@pytest.mark.parametrize("page", RUN)
def test_documented_code_runs(page, tmp_path, monkeypatch, without_a_screen):
    monkeypatch.chdir(tmp_path)
    if page == "docs/records.md":  # which reads what `cmdplab reproduce` has written
        with in_one_process():
            cmdplab.compare("three-state", "OptCMDP", episodes=9, seeds=1, out="runs/figure1")
    run_blocks(page)


@pytest.mark.parametrize("page", NOTEBOOKS)
@pytest.mark.slow  # they are run when the site is built, too
def test_notebooks_run(page, tmp_path, monkeypatch, without_a_screen):
    monkeypatch.chdir(tmp_path)
    run_blocks(page)


def test_every_block_of_python_is_run():
    total = {each: len(PYTHON.findall((ROOT / each).read_text())) for each in WITH_PYTHON}
    run = sum(total[each] for each in (*RUN, *NOTEBOOKS))
    print(f"{run} of {sum(total.values())} blocks on {len(total)} pages")
    assert sum(total.values()) - run == sum(total[each] for each in NOT_RUN) == 1
    for page in PAGES:  # no block under another name
        assert not re.search(r"^```(?:py|python3|ipython\w*)\n", page.read_text(), re.MULTILINE), (
            page
        )


def test_every_command_on_a_page_exists_with_its_options():
    commands = typer.main.get_command(cli.app).commands
    known = {
        name: {opt for each in command.params for opt in (*each.opts, *each.secondary_opts)}
        for name, command in commands.items()
    }
    seen = 0
    for page in PAGES:
        for block in SHELL.finditer(page.read_text()):
            for line in (block[1] or block[2]).splitlines():
                words = line.split("#")[0].split()
                if words[:1] != ["cmdplab"] or len(words) < 2 or words[1].startswith("-"):
                    continue
                assert words[1] in known, f"{page.name}: {line}"
                options = {each.partition("=")[0] for each in words if each.startswith("--")}
                options = {each.rstrip(",") for each in options} - {"--help"}
                assert options <= known[words[1]], f"{page.name}: {line}"
                seen += 1
    assert seen > 80


def test_the_reference_has_every_command_and_option():
    from reference_text import commands_text

    text = commands_text()
    for name, command in typer.main.get_command(cli.app).commands.items():
        section = text.partition(f"## cmdplab {name}\n")[2].partition("\n## ")[0]
        assert section, name
        for each in command.params:
            options = each.opts if each.param_type_name == "option" else [each.name.upper()]
            assert all(f"`{opt}`" in section or f"`[{opt}]`" in section for opt in options), each
            assert each.help, f"{name} {each.name} says nothing about itself"


def test_every_public_name_has_an_entry_and_an_example():
    from reference_text import groups

    listed = [name for names in groups().values() for name in names]
    assert sorted(listed) == sorted(cmdplab.__all__)  # each once
    page = (ROOT / "docs" / "reference" / "examples.md").read_text()
    code = "\n".join(PYTHON.findall(page))
    assert [name for name in cmdplab.__all__ if not re.search(rf"cmdplab\.{name}\b", code)] == []


def test_docstrings_become_sections_that_numpydoc_reads():
    from reference_text import numpydoc_lines

    class Pair(NamedTuple):
        """Two numbers."""

        first: int  # of a | b
        second: float

    given = ["Make it.", "", "size : how large;", "    at least 1.", "", "    x = y * z", "", "So."]
    assert numpydoc_lines(given) == [
        *("Make it.", "", "::", "", "    x = y * z", "", "So.", ""),
        *("", "Parameters", "----------", "size", "    how large; at least 1.", ""),
    ]
    assert numpydoc_lines(["Two numbers."], Pair)[2:] == [
        *("", "Attributes", "----------", "first : int", "    of a \\| b"),
        *("second : float", "    ", ""),
    ]


def test_every_page_is_in_the_contents():
    docs = ROOT / "docs"
    listed = {docs / "index.md"}
    static = docs / "_static"  # `make docs` leaves the table of the board there
    pages = {each for each in docs.rglob("*.md") if static not in each.parents}
    for page in pages:
        for tree in blocks(page.read_text(), r"\{toctree\}"):
            for line in tree.splitlines():
                if line and not line.startswith(":"):
                    listed |= set((page.parent).glob(f"{line}.md"))
    listed = {each.resolve() for each in listed}
    assert {each for each in pages if each.resolve() not in listed} == set()


def test_the_readme_shows_what_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "README.md").read_text()
    shown = blocks(text, "text")[0].splitlines()
    printed = run_blocks("README.md").splitlines()
    # The certificate is rounding, and rounding depends on the machine.
    assert [re.sub(r"\de-\d\d", "", line) for line in shown] == [
        re.sub(r"\de-\d\d", "", line) for line in printed[: len(shown)]
    ]


def test_links_of_the_readme_lead_to_the_line_that_they_name():
    text = (ROOT / "README.md").read_text()
    links = re.findall(r'\(([\w/.]+)#L(\d+) "([^"]+)"\)', text)
    assert len(links) >= 9
    for file, line, words in links:
        lines = (ROOT / file).read_text().splitlines()
        right = [number for number, each in enumerate(lines, 1) if words in each]
        assert right[:1] == [int(line)], f"{file}: {words!r} is on line {right}"


@pytest.mark.parametrize(
    "example",
    [*sorted((ROOT / "examples").glob("*.py")), *sorted((ROOT / "examples/gallery").glob("*.py"))],
    ids=lambda p: p.name,
)
@pytest.mark.slow
def test_examples_run(example, tmp_path, capsys, monkeypatch, without_a_screen):
    monkeypatch.setenv("EPISODES", "200")  # the live ones take minutes in earnest
    monkeypatch.setattr("sys.argv", [str(example)])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out or "gallery" in example.parts  # whose figures are the answer


@pytest.mark.parametrize(
    "example", sorted((ROOT / "examples" / "textbook").glob("*.py")), ids=lambda p: p.name
)
def test_textbook_problems_have_the_values_of_closed_forms_fractions_and_programs(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    lines = re.findall(
        r"(-?\d+\.\d{8})\s+(?:closed form|linear program|fractions)\s+(-?\d+\.\d{8})",
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


MAKING = (
    r"by a reviewer|fresh eyes|busy machine|kept busy|stopped once|slower hour|came after this"
    r"|another machine of the kind|house with rooms|memory: unverified"
)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_pages_speak_of_the_project_and_not_of_its_making(page):
    assert not re.search(MAKING, page.read_text(), re.IGNORECASE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_alternative_texts_describe_their_picture(page):
    for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", page.read_text()):
        assert len(words.split()) >= 8, f"{page.name}: {target} has the text {words!r}"


def test_the_pages_count_the_environments():
    listed = cmdplab.list_environments()
    fixed = sum(each["optimum"] is not None for each in listed)
    counts = f"{len(listed)} environments: {fixed} with a fixed"
    assert counts in " ".join((ROOT / "docs" / "environments.md").read_text().split())
    reference = (ROOT / "docs" / "reference" / "index.md").read_text()
    assert f"{len(listed)} problems, {fixed} of them with a fixed" in reference


def test_citation_and_metadata_agree():
    citation = (ROOT / "CITATION.cff").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (author,) = project["authors"]
    assert f'authors:\n  - name: "{author["name"]}"\n' in citation
    assert f"license: {project['license']}\n" in citation
    assert f"version: {cmdplab.__version__}\n" in citation
    for version in ("3.11", "3.12", "3.13"):  # those of the workflow
        assert f"Programming Language :: Python :: {version}" in project["classifiers"]
        assert f'"{version}"' in (ROOT / ".github" / "workflows" / "tests.yml").read_text()


def test_links_of_the_metadata_follow_the_address_in_the_citation(tmp_path):
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    citation = re.sub(r"(?m)^repository-code: .*\n", "", (ROOT / "CITATION.cff").read_text())
    (tmp_path / "CITATION.cff").write_text(citation)
    (tmp_path / "src" / "cmdplab").mkdir(parents=True)
    (tmp_path / "src" / "cmdplab" / "__init__.py").write_text('__version__ = "1.0"\n')
    assert ProjectMetadata(str(tmp_path), PluginManager()).core.urls == {}
    with (tmp_path / "CITATION.cff").open("a") as file:
        file.write('repository-code: "https://example.org/cmdplab/"\n')
    urls = ProjectMetadata(str(tmp_path), PluginManager()).core.urls
    assert urls["Source"] == "https://example.org/cmdplab"
    assert urls["Issues"] == "https://example.org/cmdplab/issues"


def test_workflows_use_actions_by_their_commits():
    for file in (ROOT / ".github" / "workflows").glob("*.yml"):
        uses = re.findall(r"uses: (\S+)", file.read_text())
        assert uses
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", each) for each in uses), file


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
