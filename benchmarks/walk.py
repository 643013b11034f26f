"""The walk of a command: which functions of cmdplab it enters, and in how many files.

    python benchmarks/walk.py                      of `cmdplab run published --out DIR`
    python benchmarks/walk.py solve three-state    of another command; "{out}" is a new folder

It is what somebody meets who follows the command through the code, in all its processes. What is
entered only while modules are imported, such as decorators, is counted apart from what the call
itself enters. Modules, classes and comprehensions are no functions here, and methods that
`dataclass` and `NamedTuple` write have no lines to read. The command first runs without being
watched, so that nothing is left to compile: compiled code is not seen. On a machine that is so
busy that the command takes ten or thirty seconds, it also tells its progress (two functions more)
or keeps a checkpoint on the way (one more): measure again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGE = SOURCE / "cmdplab"
COMMAND = ("run", "published", "--out", "{out}")

# Python imports it first, in every process that finds it on its path.
SITECUSTOMIZE = """
import os, sys, threading

ROOT, FOUND = os.environ["WALK_ROOT"] + os.sep, os.environ["WALK_FOUND"]
INNER = {"<module>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}
OPTIMIZED = 1  # a flag that the bodies of modules and classes lack
importing, calling = set(), set()
found = os.open(os.path.join(FOUND, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def imports(frame):
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def look(frame, event, argument):
    code = frame.f_code
    if event != "call" or code in calling or not code.co_filename.startswith(ROOT):
        return
    if code.co_name in INNER or not code.co_flags & OPTIMIZED:
        return
    during = imports(frame)
    seen = importing if during else calling
    if code not in seen:
        seen.add(code)
        place = code.co_filename.removeprefix(ROOT), str(code.co_firstlineno), code.co_qualname
        os.write(found, "\\t".join(["import" if during else "call", *place]).encode() + b"\\n")


threading.setprofile(look)
sys.setprofile(look)
"""

Place = tuple[str, int, str]  # file, line, name


def play(arguments: list[str], environment: dict[str, str]) -> None:
    """Run the command once, in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        given = [each.replace("{out}", os.path.join(folder, "out")) for each in arguments]
        command = [sys.executable, "-m", "cmdplab", *given]
        subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True)


def walk(arguments: list[str]) -> dict[str, set[Place]]:
    """The functions that the command enters, by "call" and "import"."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    play(arguments, environment)
    places: dict[str, set[Place]] = {"call": set(), "import": set()}
    with tempfile.TemporaryDirectory() as path, tempfile.TemporaryDirectory() as found:
        Path(path, "sitecustomize.py").write_text(SITECUSTOMIZE)
        paths = os.pathsep.join([path, str(SOURCE)])
        traced = {"PYTHONPATH": paths, "WALK_ROOT": str(PACKAGE), "WALK_FOUND": found}
        play(arguments, environment | traced)
        for process in Path(found).iterdir():
            for line in process.read_text().splitlines():
                when, file, number, name = line.split("\t")
                places[when].add((file, int(number), name))
    return places


def print_walk(title: str, places: set[Place]) -> None:
    files = defaultdict(list)
    for file, line, name in sorted(places):
        files[file].append(f"{line:5} {name}")
    print(f"{title}: {len(places)} functions in {len(files)} files\n")
    for file, names in files.items():
        print(f"  {file} ({len(names)})", *names, sep="\n    ")
    print()


def main() -> None:
    arguments = sys.argv[1:] or list(COMMAND)
    places = walk(arguments)
    everything = places["call"] | places["import"]
    print_walk("entered while modules are imported, and not again", everything - places["call"])
    print_walk("entered by the call", places["call"])
    print(f"all: {len(everything)} functions in {len({place[0] for place in everything})} files")


if __name__ == "__main__":
    main()
