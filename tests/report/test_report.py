"""The report without a browser: what is in the page, and that nothing else is."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_up_records import HORIZON, OPTIMUM, believed, records

from cmdplab import Experiment, sweep
from cmdplab.algorithms import FIGURE_1
from cmdplab.cli.plot import report_command
from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.records.tables import read_curves
from cmdplab.files import write_table
from cmdplab.measures.verdict import common_verdict
from cmdplab.report import gather, write_report, write_tables
from cmdplab.report.model import kept
from cmdplab.report.tables import latex

pytestmark = pytest.mark.usefixtures("one_process")

NASTY = "<script>alert(1)</script>&\"'\u2028{{data}}</style><!--"
NASTY_NAME = NASTY.replace("\u2028", "=")  # names of problems are printable


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.content: dict[str, str] = {}
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in = tag + (dict(attrs).get("id") or "")

    def handle_data(self, data: str) -> None:
        self.content[self._in] = self.content.get(self._in, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._in = ""


def data_of(page: Path) -> dict:
    return json.loads(_Tags(page.read_text(encoding="utf-8")).content["scriptdata"])


def decode(text: str) -> np.ndarray:
    kind, _, rest = text.partition(":")
    return np.frombuffer(base64.b64decode(rest), dtype=f"<{kind}").astype(np.float64)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return records(tmp_path_factory.mktemp("report") / "made")


@pytest.fixture(scope="module")
def page(folder):
    return write_report(folder)


def test_it_lies_in_the_folder_or_where_it_was_asked_for(folder, page, tmp_path):
    assert page == folder / "report.html"
    there = write_report(folder, tmp_path / "new" / "mine.html")
    assert there.read_bytes() == page.read_bytes()  # the same records give the same page
    assert write_report(folder, tmp_path) == tmp_path / "report.html"
    assert {each.name for each in folder.glob(".*")} <= {".columns", ".index", ".lock"}


@pytest.mark.slow
def test_the_paper_s_figure_fits_into_five_megabytes(tmp_path):
    big = records(tmp_path / "big", seeds=5, episodes=300_000)
    size = write_report(big).stat().st_size
    assert size < 5_000_000
    assert size < 1_500_000


def test_it_loads_nothing(page):
    text = page.read_text(encoding="utf-8")
    found = _Tags(text)
    assert not [tag for tag, at in found.tags if {"src", "srcset", "action", "background"} & {*at}]
    links = [at["href"] for _, at in found.tags if "href" in at]
    outside = [href for href in links if not href.startswith(("#", "data:,"))]
    assert outside == ["https://arxiv.org/abs/2401.17780"]
    assert "@import" not in text
    assert "url(" not in found.content["style"]
    script = found.content["script"]
    assert re.findall(r"https?://[^\"]*", script) == ["http://www.w3.org/2000/svg"]  # a name space
    for word in ("fetch(", "XMLHttpRequest", "import(", "innerHTML", "eval(", "document.write"):
        assert word not in script
    policy = next(at["content"] for tag, at in found.tags if at.get("http-equiv"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'")
    assert f"script-src 'sha256-{digest}'" in policy


def test_numbers_are_those_of_the_records(folder, page):
    summary = json.loads((folder / "summary.json").read_text())
    (problem,) = data_of(page)["problems"]
    assert problem["optimum"] == OPTIMUM
    assert problem["horizon"] == HORIZON
    assert [each["label"] for each in problem["algorithms"]] == list(summary["algorithms"])
    curves = read_curves(folder / "curves.parquet")
    for each in problem["algorithms"]:
        assert each["verdict"] == common_verdict(curves[each["label"]], HORIZON)
        for field, spread in each["numbers"].items():
            values = summary["algorithms"][each["label"]][field]
            assert spread["median"] == np.median(values)
            assert (spread["low"], spread["high"]) == (min(values), max(values))


def test_no_episode_escapes_the_band(folder, page):
    (problem,) = data_of(page)["problems"]
    curves = read_curves(folder / "curves.parquet")
    for each in problem["algorithms"]:
        mine = curves[each["label"]]
        episodes = decode(each["episode"])
        assert episodes[-1] == 30_000
        places = np.searchsorted(episodes, mine[0]["episode"])  # the point that a row leads to
        assert len(episodes) <= 1202
        for name in ("gap", "violation", "violation_1", "multiplier_1"):
            median, low, high = map(decode, each["curves"][name]["of"])
            for c in mine:
                assert (low[places] <= c.get(f"{name}_min", c[name])).all()
                assert (high[places] >= c.get(f"{name}_max", c[name])).all()
            rows = np.searchsorted(mine[0]["episode"], episodes)
            exact = np.median([c[name][rows] for c in mine], axis=0)
            np.testing.assert_array_equal(median, exact.astype(np.float32))


def test_thinning_keeps_both_ends_and_what_both_axes_need():
    episodes = np.arange(1.0, 10_001.0)
    rows = kept(episodes, 400)
    assert rows[0] == 0
    assert rows[-1] == 9999
    assert len(rows) <= 401
    assert np.diff(episodes[rows]).max() <= 10_000 / 199 + 1
    assert (episodes[rows] <= 10).sum() >= 9
    assert len(kept(episodes[:50], 400)) == 50


def test_the_slider_s_data_are_the_mistakes_of_the_records(folder, page):
    (problem,) = data_of(page)["problems"]
    mistakes = read_curves(folder / "mistakes.parquet")
    first = next(iter(mistakes.values()))[0]
    np.testing.assert_array_equal(decode(problem["epsilons"]), first["epsilon"])
    assert problem["series"] == ["gap", "violation", "either"]
    for each in problem["algorithms"]:
        mine = mistakes[each["label"]]
        assert set(each["mistakes"]) == set(first) - {"epsilon"}
        for name, rows in each["mistakes"].items():
            values = np.stack([c[name] for c in mine])
            expected = (np.median(values, axis=0), values.min(axis=0), values.max(axis=0))
            for row, exact in zip(rows, expected, strict=True):
                np.testing.assert_array_equal(decode(row), exact)


def test_counts_too_large_for_single_precision_stay_exact(tmp_path):
    made = records(tmp_path / "long", names=("UOpt-RPGPD",), seeds=2, episodes=2000)
    run = works_of(made)[0].folder
    table = pq.read_table(run / "mistakes.parquet")
    large = pa.array(np.arange(table.num_rows)[::-1] + 10**9 + 1)
    place = table.column_names.index("gap_mistakes")
    table = table.set_column(place, "gap_mistakes", large)
    write_table(table, run / "mistakes.parquet")
    believed(run)
    (each,) = data_of(write_report(made))["problems"][0]["algorithms"]
    np.testing.assert_array_equal(decode(each["mistakes"]["gap_mistakes"][2]), np.asarray(large))


def test_names_stay_text(tmp_path):
    names = (NASTY, "UOpt-RPGPD")
    made = records(tmp_path / "a<b>&c", names=names, seeds=2, episodes=3000, problem=NASTY_NAME)
    page = write_report(made)
    text = page.read_text(encoding="utf-8")
    plain = _Tags(write_report(records(tmp_path / "plain", seeds=1, episodes=100)).read_text())
    tags = _Tags(text)
    assert [tag for tag, _ in tags.tags] == [tag for tag, _ in plain.tags]
    assert "<script>alert(1)" not in text
    assert "\u2028" not in tags.content["scriptdata"]
    assert not set("<>&") & set(tags.content["scriptdata"])
    data = data_of(page)
    assert data["folder"] == "a<b>&c"
    assert data["problems"][0]["name"] == NASTY_NAME
    assert [each["label"] for each in data["problems"][0]["algorithms"]] == [*names]


def test_tables(folder, tmp_path):
    tex, table = write_tables(folder, tmp_path)
    (problem,) = data_of(write_report(folder, tmp_path))["problems"]
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["algorithm"] for row in rows] == [*FIGURE_1]
    for row, each in zip(rows, problem["algorithms"], strict=True):
        assert float(row["strong_regret_median"]) == each["numbers"]["strong_regret"]["median"]
        assert row["verdict"] == each["verdict"]
    lines = tex.read_text().splitlines()
    assert lines.count(r"\toprule") == lines.count(r"\bottomrule") == 1
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    assert len(body) == len(FIGURE_1)
    assert all(line.count(" & ") == 8 and line.endswith(r" \\") for line in body)


def test_latex_escapes():
    assert latex("a_b & 5 % $x^2$ {~} #1") == (
        r"a\_b \& 5 \% \$x\textasciicircum{}2\$ \{\textasciitilde{}\} \#1"
    )
    assert latex("\\input{x}\n%") == r"\textbackslash{}input\{x\} \%"


def test_without_constraints_there_is_no_violation(tmp_path):
    made = records(tmp_path / "free", seeds=1, episodes=3000, constraints=0)
    (problem,) = data_of(write_report(made))["problems"]
    assert problem["series"] == ["gap"]
    assert [name for name, _ in problem["columns"]] == ["gap", "strong_regret", "weak_regret"]
    assert problem["algorithms"][0]["numbers"]["final_violation"] is None
    tex, _ = write_tables(made)
    assert "& -- &" in tex.read_text()


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Two problems, three settings, two seeds; one run fails, one is gone, one is cut short."""
    experiment = Experiment.model_validate(
        {
            "name": "mixed",
            "episodes": 1500,
            "seeds": 2,
            "problems": [{"environment": "three-state"}, {"environment": "media-streaming"}],
            "algorithms": [
                {"name": "UOpt-RPGPD", "bonus_scale": [1e-3, 1e-2]},
                {"name": "OptPrimalDual-CMDP"},
            ],
        }
    )
    folder = tmp_path_factory.mktemp("sweep") / "mixed"
    sweep(experiment, folder, workers=2)
    failed, gone, cut = [each.folder for each in works_of(folder)][:3]
    record = manifest.read(failed)
    record.status, record.error = "failed", "Traceback\nValueError: <b>boom</b>"
    manifest.write(failed, record)
    for file in gone.iterdir():
        file.unlink()
    gone.rmdir()
    record = manifest.read(cut)
    record.status, record.episodes = "interrupted", 700
    manifest.write(cut, record)
    return folder, failed.name, gone.name, cut.name


def test_a_sweep_has_its_problems_and_names_what_is_missing(swept):
    folder, failed, gone, cut = swept
    page = write_report(folder)
    data = data_of(page)
    assert data["title"] == "Experiment mixed"
    assert {each["name"] for each in data["problems"]} == {"three-state", "media-streaming"}
    named = {each["run"]: each for each in data["troubles"]}
    assert {*named} == {failed, gone, cut}
    assert named[failed]["status"] == "failed"
    assert named[failed]["why"] == "ValueError: <b>boom</b>"
    assert named[gone]["status"] == "missing"
    assert (named[cut]["status"], named[cut]["why"]) == (
        "interrupted",
        "700 of 1,500 episodes done",
    )
    entries = [each for problem in data["problems"] for each in problem["algorithms"]]
    assert sum(len(each["seeds"]) for each in entries) == 12 - 3
    assert {each["planned"] for each in entries} == {2}
    labels = {each["label"] for each in entries}
    assert {"UOpt-RPGPD (bonus_scale 0.001)", "OptPrimalDual-CMDP"} <= labels
    assert all(each["optimum"] is not None for each in data["problems"])
    assert data["versions"]["numpy"] == np.__version__
    tex, table = write_tables(folder)
    assert tex.read_text().count(r"\toprule") == 2
    assert len(table.read_text().splitlines()) == 1 + len(entries)


def test_one_run_has_a_report_of_its_own(swept, tmp_path):
    folder = swept[0]
    done = next(w.folder for w in works_of(folder) if w.folder.name not in swept[1:])
    data = data_of(write_report(done, tmp_path / "one.html"))
    assert len(data["problems"][0]["algorithms"]) == 1
    assert not data["troubles"]


def test_a_run_without_end_is_shown_as_far_as_it_came(swept, tmp_path):
    done = next(w.folder for w in works_of(swept[0]) if w.folder.name not in swept[1:])
    shutil.copytree(done, tmp_path / "endless")
    record = manifest.read(done)
    record.settings = record.settings.model_copy(update={"episodes": None})
    record.status = "interrupted"
    manifest.write(tmp_path / "endless", record)
    data = data_of(write_report(tmp_path / "endless"))
    assert data["problems"][0]["algorithms"][0]["episodes"] == 1500
    assert data["troubles"][0]["why"] == "shown as far as it came: 1,500"
    record.episodes = 1600  # killed: the checkpoint is ahead of the curves
    manifest.write(tmp_path / "endless", record)
    with pytest.raises(InputError, match="holds no finished run"):
        gather(tmp_path / "endless")


def test_a_sweep_of_which_nothing_is_done(swept, tmp_path):
    (tmp_path / "empty").mkdir()
    text = (swept[0] / "experiment.json").read_text()
    (tmp_path / "empty" / "experiment.json").write_text(text)
    with pytest.raises(InputError, match="holds no finished run yet"):
        gather(tmp_path / "empty")
    newer = text.replace('"schema_version": 1', '"schema_version": 99')
    (tmp_path / "empty" / "experiment.json").write_text(newer)
    with pytest.raises(InputError, match="newer cmdplab"):
        gather(tmp_path / "empty")


def test_the_command_prints_the_path(folder, swept, tmp_path, capsys):
    report_command(folder=folder, out=tmp_path / "r.html")
    assert capsys.readouterr().out == f"{tmp_path / 'r.html'}\n"
    report_command(folder=folder, out=tmp_path / "r.html", as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed["page"] == str(tmp_path / "r.html")
    assert [Path(each).name for each in printed["tables"]] == ["summary.tex", "summary.csv"]
    report_command(folder=swept[0], out=tmp_path / "s.html")
    assert "3 runs are not as planned" in capsys.readouterr().err


def _without(name: str):
    return lambda folder: (folder / name).unlink()


def _text(name: str, text: str):
    return lambda folder: (folder / name).write_text(text)


def _drop(name: str, column: str):
    def change(folder: Path) -> None:
        table = pq.read_table(folder / name).drop_columns([column])
        write_table(table, folder / name)

    return change


def _number(name: str, column: str, value: float):
    """The last number of a column becomes another one."""

    def change(folder: Path) -> None:
        table = pq.read_table(folder / name)
        values = pa.array([*table[column].to_pylist()[:-1], value])
        place = table.column_names.index(column)
        write_table(table.set_column(place, column, values), folder / name)

    return change


def _rows(name: str, keep: slice):
    def change(folder: Path) -> None:
        table = pq.read_table(folder / name)
        table = table.slice(keep.start or 0, keep.stop)
        write_table(table, folder / name)

    return change


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_number("curves.parquet", "gap", 1.5), "are not of one run"),
        (_number("curves.parquet", "gap_max", float("nan")), "gap_max of UOpt-RPGPD (seed 1) is"),
        (_number("mistakes.parquet", "epsilon", 11.0), "do not share one epsilon grid"),
        (_drop("curves.parquet", "gap_min"), "no column 'gap_min'"),
        (_drop("curves.parquet", "violation_max"), "no column 'violation_max'"),
        (_drop("curves.parquet", "seed"), "no column 'seed'"),
        (_drop("mistakes.parquet", "gap_mistakes"), "no column 'gap_mistakes'"),
        (_text("curves.parquet", "PAR1 no"), "cannot be read"),
        (_text("mistakes.parquet", ""), "cannot be read"),
        (_rows("curves.parquet", slice(0, 0)), "holds no runs"),
        (_rows("curves.parquet", slice(5, 10**6)), "do not share one episode grid"),
        (_rows("mistakes.parquet", slice(0, 20)), "do not share one epsilon grid"),
    ],
)
def test_a_run_that_its_manifest_believes_and_that_makes_no_sense_is_one_sentence(
    tmp_path, spoil, words
):
    made = records(tmp_path / "bad", names=("UOpt-RPGPD",), seeds=2, episodes=300)
    run = works_of(made)[1].folder
    spoil(run)
    believed(run)
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        write_report(made)
    assert "\n" not in str(caught.value)
    assert not (made / "report.html").exists()


@pytest.mark.parametrize("name", ["curves.parquet", "mistakes.parquet", "checkpoint.npz"])
@pytest.mark.parametrize("spoil", [_without, lambda name: _text(name, "PAR1 no")])
def test_a_run_that_is_not_what_its_manifest_says_is_named_and_left_out(tmp_path, spoil, name):
    made = records(tmp_path / "bad", names=("UOpt-RPGPD",), seeds=2, episodes=300)
    run = works_of(made)[1].folder
    spoil(name)(run)
    found = gather(made)
    assert [(each.run, each.status) for each in found.troubles] == [(run.name, "damaged")]
    assert found.sections[0].entries[0].seeds == [0]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_without("experiment.json"), "holds no records"),
        (_text("experiment.json", "{"), "cannot be read"),
        (_text("experiment.json", "[]"), "is not an experiment"),
    ],
)
def test_a_list_of_runs_that_is_none_is_one_sentence(tmp_path, spoil, words):
    made = records(tmp_path / "bad", names=("UOpt-RPGPD",), seeds=1, episodes=300)
    spoil(made)
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        write_report(made)
    assert "\n" not in str(caught.value)
    assert not (made / "report.html").exists()


def test_folders_that_are_none(tmp_path, folder):
    with pytest.raises(InputError, match="is not a folder"):
        gather(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no records"):
        gather(tmp_path)
    with pytest.raises(InputError, match=r"does not end in \.html"):
        write_report(folder, folder / "curves.parquet")
