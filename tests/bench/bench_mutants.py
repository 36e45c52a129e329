# SPDX-License-Identifier: Apache-2.0
"""How many seeded changes of production code, of Python and C, the tests notice.

Each change is made in a copy of the tree. Then those tests run that name its module, those of its room, and the flows
that name its room, until one fails. What no test notices is printed, with its line before and after.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from figures import ROOT
from report import Report, Table, bench_parser
from source_mutants import Mutant, mutants_of

LIBRARIES = "backends/nndeploy_kernels/lib"
KERNELS = "tests/unit/native_backend", "tests/unit/kernels", "tests/oracle"
ROOMS = {
    "backends/nndeploy_kernels": KERNELS, "backends/nndeploy_native": KERNELS,
    "backends/nndeploy_triton": ("tests/unit/triton",), "backends/nndeploy_cudnn": ("tests/unit/cudnn",),
    "backends/nndeploy_tensorrt": ("tests/unit/tensorrt",),
    "backends/nndeploy_openvino": ("tests/unit/backends", "tests/conformance/test_backends_openvino.py"),
    "backends/nndeploy_onnxruntime": ("tests/unit/backends", "tests/conformance/test_backends_onnxruntime.py"),
    "backends/nndeploy_reference": ("tests/unit/backends", "tests/oracle"),
}  # fmt: skip
"""Where tests of a backend lie; those of a room of nndeploy/ lie in the room of that name in tests/unit."""
PYTEST = "pytest -x -q -n 0 -p no:cacheprovider -p no:randomly"
VERDICTS = ("noticed", "too slow", "unnoticed", "untested")


def main() -> int:
    parser = bench_parser(__doc__)
    parser.add_argument("--count", type=int, default=300, help="changes")
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--under", default="", help="only in files whose path begins so")
    parser.add_argument("--tests", type=Path, default=ROOT, help="the tree whose tests/ is judged")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=5.0, help="of one change; one that takes longer is noticed")
    args = parser.parse_args()
    mutants = mutants_of(ROOT, args.count, args.seed, args.under)
    trees: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        for number in range(args.jobs):
            trees.put(_copied(Path(folder) / str(number), args.tests))
        verdicts = list(pool.map(lambda one: _tried(one, trees, args), mutants))
    with Report(args, "robustness.md", "Changes of the code") as report:
        _reported(mutants, verdicts, report)
    return 0


def _copied(tree: Path, tests: Path) -> Path:
    """Returns a copy of what is committed or changed here, with the libraries, and the tests of a tree."""
    for source, under in ((ROOT, ""), (tests, "tests")):
        listed = subprocess.run(["git", "ls-files", "-z", under or "."], cwd=source, capture_output=True, check=True)
        for name in listed.stdout.decode().split("\0"):
            if (source / name).is_file() and (under or not name.startswith("tests/")):
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, tree / name)
    shutil.copytree(ROOT / LIBRARIES, tree / LIBRARIES)
    return tree


def _tried(mutant: Mutant, trees: "SimpleQueue[Path]", args: argparse.Namespace) -> str:
    """Returns what became of a change: "noticed", "too slow", "unnoticed", or "untested" where no test is near."""
    tree = trees.get()
    path = tree / mutant.path
    source = path.read_text(encoding="utf-8")
    try:
        path.write_text(mutant.applied_to(source), encoding="utf-8")
        near = list(_tests_near(mutant.path, tree))
        verdict = _run(tree, near, args.minutes * 60) if near else "untested"
    finally:
        path.write_text(source, encoding="utf-8")
        trees.put(tree)
    print(f"{verdict:9} {mutant.shown(source)}", file=sys.stderr, flush=True)
    return verdict


def _tests_near(path: str, tree: Path) -> Iterator[str]:
    room = "/".join(path.split("/")[:2])
    module = path.removesuffix(".py").removeprefix("backends/").replace("/", ".").removesuffix(".__init__")
    folders = ROOMS.get(room, (f"tests/unit/{Path(path).parts[1].removesuffix('.py')}",))
    files = [file for file in sorted((tree / "tests").rglob("test_*.py")) if "bench" not in file.parts]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    naming = [file for file, text in texts.items() if module in text]
    in_room = [file for file in files if file.relative_to(tree).as_posix().startswith(folders)]
    flows = [file for file, text in texts.items() if "flow" in file.parts and module.rpartition(".")[0] in text]
    yield from dict.fromkeys(file.relative_to(tree).as_posix() for file in [*naming, *in_room, *flows])


def _run(tree: Path, files: list[str], seconds: float) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'backends'}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", *PYTEST.split(), *files]
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return "too slow"
    return "noticed" if done.returncode else "unnoticed"


def _reported(mutants: list[Mutant], verdicts: list[str], report: Report) -> None:
    table = Table(report, ["Room", "Changes:", *(f"{kind}:" for kind in VERDICTS)])
    rooms = [_room(mutant) for mutant in mutants]
    for room in [*sorted(set(rooms)), "all"]:
        counts = Counter(verdict for one, verdict in zip(rooms, verdicts, strict=True) if room in (one, "all"))
        table.row(room, counts.total(), *(counts[kind] for kind in VERDICTS))


def _room(mutant: Mutant) -> str:
    return "C" if mutant.path.endswith(".c") else "/".join(mutant.path.split("/")[:2])


if __name__ == "__main__":
    sys.exit(main())
