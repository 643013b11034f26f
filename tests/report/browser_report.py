"""The report in a real browser: `make test-browser` runs this file with the Chromium there is.

Screenshots go to a temporary folder, or to $REPORT_SCREENSHOTS.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from made_up_records import records
from test_report import NASTY, NASTY_NAME, data_of, decode, swept  # noqa: F401

from cmdplab.algorithms import FIGURE_1
from cmdplab.experiments.records.tables import read_curves
from cmdplab.report import gather, write_report, write_tables

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module", autouse=True)
def chromium():
    if not CHROMIUM:
        pytest.skip(
            "there is no Chromium: `apt-get install chromium`, or give its path as CHROMIUM"
        )


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a page; in the end there must have been no complaint and no request beyond the file."""
    complaints, contexts = [], []

    def go(path: Path, scheme: str = "light", width: int = 1280, height: int = 800, **more):
        ready = more.pop("ready", "#charts canvas[data-x]")
        context = browser.new_context(
            color_scheme=scheme, viewport={"width": width, "height": height}, **more
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
        page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
        own = path.resolve().as_uri()

        def request(request) -> None:
            if request.url != own and not request.url.startswith(("data:", "blob:")):
                complaints.append(f"request: {request.url}")

        page.on("request", request)
        page.goto(own)
        page.wait_for_selector(ready)
        return page

    yield go
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Records, with the page about them."""
    made = records(tmp_path_factory.mktemp("browser") / "made")
    write_report(made)
    return made


@pytest.fixture(scope="module")
def file(folder):
    return folder / "report.html"


@pytest.fixture(scope="module")
def shots(tmp_path_factory):
    given = os.environ.get("REPORT_SCREENSHOTS")
    path = Path(given) if given else tmp_path_factory.mktemp("screenshots")
    path.mkdir(parents=True, exist_ok=True)
    return path


def settled(page) -> None:
    """Until what was asked for has been painted."""
    page.evaluate("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")


def view(page, panel: int = 0, axis: str = "x") -> list[float]:
    settled(page)
    canvas = page.locator("#charts canvas").nth(panel)
    return [float(each) for each in canvas.get_attribute(f"data-{axis}").split()]


def drag(page, start: tuple[float, float], end: tuple[float, float], panel: int = 0) -> None:
    """From one place to another, as shares of the canvas."""
    page.locator("#charts canvas").nth(panel).scroll_into_view_if_needed()
    box = page.locator("#charts canvas").nth(panel).bounding_box()
    at = [
        (box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)
    ]  # fmt: skip
    page.mouse.move(*at[0])
    page.mouse.down()
    page.mouse.move(*at[1], steps=5)
    page.mouse.up()


def test_verdicts_come_first_and_sort(visit, file):
    page = visit(file)
    (problem,) = data_of(file)["problems"]
    order = page.eval_on_selector_all("main > section:not([hidden])", "all => all.map(e => e.id)")
    assert order == ["facts", "verdicts", "safety", "curves", "mistakes", "settings", "cite"]
    names = page.locator("#summary tbody th .name > span")
    assert [each.split(" ")[0] for each in names.all_inner_texts()] == [*FIGURE_1]
    chips = page.locator("#summary .chip").all_inner_texts()
    assert chips == [each["verdict"] for each in problem["algorithms"]]
    medians = {e["label"]: e["numbers"]["final_gap"]["median"] for e in problem["algorithms"]}
    for turn, expected in (("ascending", False), ("descending", True)):
        page.get_by_role("button", name="Final gap").click()
        head = page.locator("#summary th", has_text="Final gap")
        assert head.get_attribute("aria-sort") == turn
        found = [each.split(" ")[0] for each in names.all_inner_texts()]
        assert found == sorted(medians, key=medians.__getitem__, reverse=expected)


def counted(page) -> dict[tuple[str, str], list[float]]:
    cells = page.eval_on_selector_all(
        "#counts td[data-series]",
        "all => all.map(e => [e.closest('tr').dataset.algorithm, "
        "`${e.dataset.series}_${e.dataset.what}`, e.dataset.value, e.innerText])",
    )
    for _, what, values, text in cells:
        median = float(values.split()[0])
        assert "." not in text  # a number of episodes is whole, also half-way between two
        shown = text.split("\n")[0].replace(",", "")
        none = shown == "none" and "last" in what
        assert none or abs(int(shown) - median) <= 0.5
    return {(name, what): [float(v) for v in values.split()] for name, what, values, _ in cells}


def test_the_slider_recounts(visit, folder, file):
    page = visit(file)
    mistakes = read_curves(folder / "mistakes.parquet")
    slider = page.locator("#epsilon")
    assert slider.get_attribute("max") == "200"
    seen = set()
    for place in (0, 37, 120, 121, 160, 200):
        slider.fill(str(place))
        found = counted(page)
        assert len(found) == len(FIGURE_1) * 6
        for (name, what), values in found.items():
            exact = np.stack([seed[what][place] for seed in mistakes[name]])
            assert values == [np.median(exact), exact.min(), exact.max()]
        seen.add(str(found))
    assert len(seen) > 3
    slider.fill("100")
    slider.focus()
    page.keyboard.press("ArrowRight")
    epsilon = mistakes[FIGURE_1[0]][0]["epsilon"][99]  # stricter to the right, as in the figures
    assert float(page.locator("#epsilon-value").inner_text()) == pytest.approx(epsilon, rel=5e-3)
    canvas = page.locator("#mistake-chart canvas")  # pressing the chart moves the slider
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 12, box["y"] + 50)
    assert slider.input_value() == "0"
    page.mouse.click(box["x"] + 54, box["y"] + 50)
    assert slider.input_value() == "200"


def test_hiding(visit, file):
    page = visit(file)
    lines = page.locator("#charts canvas").first
    legend = page.locator("#legend button")
    assert lines.get_attribute("data-lines") == "5"
    legend.nth(2).click()
    settled(page)
    for canvas in page.locator("canvas[data-lines]").all():
        assert canvas.get_attribute("data-lines") == "4"
    assert legend.nth(2).get_attribute("aria-pressed") == "false"
    assert page.locator("#summary tr.off").count() == 1
    legend.nth(2).press("Enter")
    settled(page)
    assert lines.get_attribute("data-lines") == "5"
    legend.nth(0).click(modifiers=["Shift"])
    settled(page)
    assert lines.get_attribute("data-lines") == "1"
    legend.nth(0).click(modifiers=["Shift"])
    settled(page)
    assert lines.get_attribute("data-lines") == "5"


def test_zooming(visit, file):
    page = visit(file)
    assert view(page) == [1, 30_000]
    drag(page, (0.5, 0.5), (0.75, 0.5))
    low, high = view(page)
    assert 1 < low < high < 30_000
    assert high - low == pytest.approx(30_000 * 0.25, rel=0.25)
    assert view(page, 1) == [low, high]  # both panels look at the same episodes
    page.locator("#charts canvas").first.dblclick()
    assert view(page) == view(page, 1) == [1, 30_000]
    before = view(page, 0, "y")
    drag(page, (0.4, 0.3), (0.8, 0.6))
    narrow = view(page, 0, "y")
    assert before[0] < narrow[0] < narrow[1] < before[1]
    share = 0.3 * 360 / (360 - 50)  # of the plot, which is the canvas without its margins
    assert narrow[1] - narrow[0] == pytest.approx(share * (before[1] - before[0]), rel=0.02)
    page.locator("#reset").click()
    assert view(page) == [1, 30_000]
    assert view(page, 0, "y") == before
    page.get_by_role("button", name="zoom in").click()
    assert view(page)[1] - view(page)[0] == pytest.approx(29_999 / 2, rel=0.01)
    page.get_by_role("button", name="zoom out").click()
    assert view(page) == [1, 30_000]
    page.locator("#charts canvas").first.focus()
    page.keyboard.press("+")
    assert view(page)[0] > 1
    for _ in range(80):  # as far as it goes, and no further
        page.keyboard.press("+")
    low, high = view(page)
    assert high > low
    page.keyboard.press("Escape")
    assert view(page) == [1, 30_000]


def test_reading_values(visit, file):
    page = visit(file)
    (problem,) = data_of(file)["problems"]
    canvas = page.locator("#charts canvas").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 100)  # the last episode
    settled(page)
    tip = page.locator("#charts .tip").first
    assert tip.is_visible()
    assert "episode 30,000" in tip.inner_text()
    rows = tip.locator("tr").all_inner_texts()
    for each in problem["algorithms"]:
        last = decode(each["curves"]["gap"]["of"][0])[-1]
        (row,) = [row for row in rows if each["label"] in row]
        shown = float(row.split("\t")[1].replace("−", "-"))
        assert shown == pytest.approx(last, rel=6e-3)
    page.mouse.move(2, 2)
    settled(page)
    assert tip.is_hidden()
    canvas.focus()
    page.keyboard.press("ArrowLeft")
    settled(page)
    settled(page)
    assert FIGURE_1[0] in page.locator("#say").inner_text()


def test_axes_and_quantities(visit, file):
    page = visit(file)
    canvas = page.locator("#charts canvas").first
    pictures = set()
    names = [name for name, _ in data_of(file)["problems"][0]["columns"]]
    assert names[:3] == ["gap", "violation", "strong_regret"]
    assert names[3:5] == ["strong_violation_regret", "multiplier_1"]
    for axis, kind in (("x", "log"), ("y", "symlog"), ("x", "linear"), ("y", "linear")):
        group = page.locator("#curve-tools .segments", has_text=axis).first
        group.get_by_role("button", name=kind, exact=True).click()
        settled(page)
        pictures.add(canvas.screenshot())
    assert len(pictures) == 4
    menu = page.get_by_label("what panel 1 shows")
    for name in names:
        menu.select_option(name)
        settled(page)
        pictures.add(canvas.screenshot())
    assert len(pictures) >= 4 + len(names) - 2  # one constraint: its violation is the largest


def test_the_table_can_be_taken_along(visit, folder, file, tmp_path):
    page = visit(file, accept_downloads=True)
    with page.expect_download() as waiting:
        page.locator("#download").click()
    assert waiting.value.suggested_filename == "summary.csv"
    waiting.value.save_as(tmp_path / "got.csv")
    _, expected = write_tables(folder, tmp_path)
    tables = [
        list(csv.reader(io.StringIO(path.read_text()))) for path in (tmp_path / "got.csv", expected)
    ]
    assert tables[0][0] == tables[1][0]
    for mine, theirs in zip(*tables, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            assert a == b or float(a) == float(b)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390),
                                               ("dark", 390)])  # fmt: skip
def test_schemes_and_widths(visit, file, shots, scheme, width):
    page = visit(file, scheme, width, 844)
    colour = "getComputedStyle(document.body).backgroundColor"
    first = page.evaluate(colour)
    assert (sum(map(int, first[4:-1].split(","))) < 200) == (scheme == "dark")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.screenshot(path=shots / f"{scheme}-{width}.png", full_page=True)
    page.locator("#theme").click()
    assert page.evaluate(colour) != first
    page.screenshot(path=shots / f"{scheme}-{width}-switched.png", full_page=True)


@pytest.mark.parametrize("name", ["x" * 60, "a problem with a long name of many words " + "y" * 19])
@pytest.mark.parametrize("problems", [1, 2])
def test_a_long_name_fits_a_phone(visit, tmp_path, shots, name, problems):
    assert len(name) == 60
    made = [gather(records(tmp_path / each, seeds=1, episodes=1200, problem=each + name[1:]))
            for each in "xy"[:problems]]  # fmt: skip
    sections = [each for one in made for each in one.sections]
    whole = made[0]._replace(title=name, sections=sections)
    there = visit(write_report(tmp_path, report=whole), width=390, height=844)
    there.screenshot(path=shots / f"long-{problems}-{name.count(' ')}.png", full_page=True)
    assert there.locator("#chooser").is_visible() == (problems > 1)
    assert there.evaluate("document.documentElement.scrollWidth") <= 390
    for part in ("#chooser", "#problem", "#theme", "#title", "#lead"):
        box = there.locator(part).bounding_box() or {"x": 0, "width": 0}
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 390


def test_printing(visit, file, shots):
    page = visit(file, "dark")
    page.pdf(path=shots / "print.pdf", format="A4")
    assert (shots / "print.pdf").stat().st_size > 10_000
    page.emulate_media(media="print")
    assert page.locator("#curve-tools").is_hidden()


def test_names_stay_text(visit, tmp_path):
    names = (NASTY, "UOpt-RPGPD")
    made = records(tmp_path / "nasty", names=names, seeds=2, episodes=3000, problem=NASTY_NAME)
    page = visit(write_report(made))
    seen = page.locator("#summary tbody th").first.text_content()
    assert NASTY in seen
    assert page.locator("#legend button").first.text_content() == NASTY
    assert page.locator("script").count() == 2
    assert page.locator("#facts dd").first.text_content() == NASTY_NAME
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_without_constraints(visit, tmp_path):
    page = visit(write_report(records(tmp_path / "free", seeds=1, episodes=3000, constraints=0)))
    assert page.locator("#counts thead th.group").count() == 2
    assert page.locator("#mistake-tools button").count() == 3


def test_a_sweep_of_several_problems(visit, swept, shots):  # noqa: F811
    page = visit(write_report(swept[0]))
    told = page.locator("#troubles").inner_text()
    assert "3 runs are not as planned" in told
    for name in swept[1:]:
        assert name in told
    assert "ValueError: <b>boom</b>" in told
    problems = [each["name"] for each in data_of(swept[0] / "report.html")["problems"]]
    assert page.locator("#overview-table thead button").all_inner_texts() == problems
    page.locator("#problem").select_option("1")
    assert page.locator("#facts dd").first.inner_text() == problems[1]
    page.locator("#overview-table thead button").first.click()
    assert page.locator("#facts dd").first.inner_text() == problems[0]
    page.screenshot(path=shots / "sweep.png", full_page=True)


# The board


@pytest.fixture(scope="module")
def board_file(tmp_path_factory):
    """A board with made-up numbers: two algorithms, three problems, one row missing."""
    from cmdplab.measures.safety import SafetyOverSeeds
    from cmdplab.studies.board_runs import Lacking
    from cmdplab.studies.board_table import NUMBERS, write_board_page

    nothing = {"outcome": "", "difference": None, "holm_p": None, "words": ""}
    smaller = {"outcome": "smaller", "difference": -1.0, "holm_p": 0.01, "words": "it is smaller"}
    rows, lines = [], []
    for n, (name, preset) in enumerate((("UOpt-RPGPD", "printed"), (NASTY, "custom"))):
        about = {"algorithm": name, "scale": "own" if n else "theory", "preset": preset}
        about |= {"factor": None if n else 1.0, "heuristic": "", "unverified": "bonus" * n}
        about["rarely"] = False
        for m, problem in enumerate(("cliff", "box", "paradox")):
            six = [10.0 * n + m, 5.0 - m, 0.5, None if n else 0.25, 0.5, 3.0]
            worst = (2, 1, 3.0, 6, 4, 0.5, 1.5, 0.2, None, "PROMISE BROKEN", True)
            row = about | {"problem": problem, "environment": problem, "horizon": 10}
            row |= {"episodes": 100, "seeds": 2, **dict(zip(NUMBERS, six, strict=True))}
            row |= {"regret_against": smaller if n else nothing, "violation_against": nothing}
            row |= {"safety": SafetyOverSeeds(*worst) if n else None, "command": "cmdplab run x"}
            rows.append(row | {"folder": None, "runs": ["aa-0", "aa-1"], "numbers": [six, six]})
        line = about | {"problems": 3, "regret": 0.1 * n, "violation": 0.2, "last_gap": 0.3}
        line |= {"last_violation": 0.4, "unsafe_share": 0.5, "us_per_episode": 7.0}
        line |= {"regret_outcomes": {"smaller": 3} if n else {}, "violation_outcomes": {}}
        line |= {"runs": 6 * n, "violating_runs": 3 * n, "largest_violation": 0.05 if n else None}
        lines.append(line | {"baseline_share": 0.2 if n else None, "broken": 3 * n})
    lacking = Lacking("DOPE", "theory", "box", 2, 1, 10, "no such kernel")
    board = {"folder": "b", "steps": 1000, "seeds": 2, "reference": "UOpt-RPGPD", "lines": lines}
    board |= {"rows": rows, "missing": 3, "troubles": [lacking.words]}
    board |= {"tuning": {"UOpt-RPGPD": {"1": 3.0, "0.1": 2.0}}, "versions": ["1"]}
    board["processors"] = ["cpu"]
    out = tmp_path_factory.mktemp("board")
    write_board_page(board, out)
    return out / "board.html"


def column(page, place: int) -> list[str]:
    cells = page.locator(f"#rows tbody tr > :nth-child({place})")
    return [each.strip() for each in cells.all_inner_texts()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1000, 1600])
def test_the_board_sorts_filters_and_opens_its_runs(visit, board_file, shots, scheme, width):
    page = visit(board_file, scheme, width, ready="#rows td")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")
    assert "DOPE (theory) on box: 2 missing and 1 failed of 10 runs" in page.inner_text("#troubles")
    assert column(page, 4) == ["0", "1", "2", "10", "11", "12"]
    page.click("#rows [data-key=strong_regret]")
    page.click("#rows [data-key=strong_regret]")
    assert column(page, 4) == ["12", "11", "10", "2", "1", "0"]
    page.click("#rows [data-key=last_violation]")  # what has no number comes last
    assert column(page, 7) == ["0.25"] * 3 + ["–"] * 3
    page.select_option("#filters [aria-label=environment]", "box")
    assert column(page, 3) == ["box", "box"]
    page.select_option("#filters [aria-label=provenance]", "custom")
    assert column(page, 4) == ["11"]
    page.screenshot(path=shots / f"board-{scheme}-{width}.png", full_page=True)
    assert column(page, 9) == ["1 of 2 PROMISE BROKEN"]
    page.click("#rows td a.cell")
    assert "1 of 2 runs violated, first in episode 4" in page.inner_text("dialog[open]")
    assert "cmdplab run x --seed 0" in page.inner_text("dialog[open]")
    page.screenshot(path=shots / f"board-runs-{scheme}-{width}.png")
    page.click("dialog button")
    page.click("#reset")
    assert len(column(page, 1)) == 6
