"""Optional packages: what works without them, and the sentence that asks for them."""

import subprocess
import sys

import pytest

from cmdplab.errors import EXTRAS, EngineError, check_installed

WITHOUT = """
import sys
sys.modules.update(dict.fromkeys({missing}))  # None: an import fails
import cmdplab
from cmdplab.cli import app
"""
A_MODEL = """
problem = cmdplab.make("three-state")
print(cmdplab.solve(problem).value)
print(cmdplab.run(problem, "UOpt-RPGPD", episodes=50).summary.episodes)
print(cmdplab.evaluate(problem, cmdplab.solve(problem).policy).value)
"""


def without_the_lab(code: str) -> subprocess.CompletedProcess[str]:
    begin = WITHOUT.format(missing=[name for name, extra in EXTRAS.items() if extra == "lab"])
    return subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True)


def test_a_model_is_solved_learned_and_evaluated_without_the_lab():
    done = without_the_lab(A_MODEL)
    assert (done.returncode, done.stderr) == (0, "")
    value, episodes, evaluated = done.stdout.split()
    assert episodes == "50"
    assert float(value) == pytest.approx(float(evaluated), abs=1e-9)


@pytest.mark.parametrize(
    "command",
    [
        ["run", "three-state", "--episodes", "50", "--out", "folder"],
        ["compare", "--problem", "three-state", "--episodes", "50", "--out", "folder"],
        ["plot", "gap", "folder"],
    ],
    ids=lambda words: words[0],
)
def test_commands_that_record_or_draw_name_the_extra_before_they_write(command, tmp_path):
    code = f"import os; os.chdir({str(tmp_path)!r}); app({command}, standalone_mode=False)"
    done = without_the_lab(code)
    assert "is not installed: pip install 'cmdplab[lab]'" in done.stderr
    assert not (tmp_path / "folder").exists()


def test_every_extra_of_a_missing_package_is_declared(monkeypatch):
    import tomllib

    from conftest import ROOT

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for package, extra in EXTRAS.items():
        assert any(one.startswith(package) for one in declared["optional-dependencies"][extra])
        assert not any(one.startswith(package) for one in declared["dependencies"])
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(EngineError, match=f"{package} is not installed: .*{extra}"):
            check_installed(package)
