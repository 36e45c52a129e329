# SPDX-License-Identifier: Apache-2.0
"""A fleet of real models for five boxes: cold, again from the cache, again as it is, and after one option changed.

    python tests/bench/bench_fleet.py [--models 26] [--write]

Needs ../shared/models and, for more than its models, build/zoo (`make zoo`). Every call is the command as a user calls
it. In the same run every bundle is verified, those of the second call are byte for byte those of the first, and every
job has one outcome.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from pathlib import Path
from typing import Any

import figures
from native_engines import machine_name

ROOT = Path(__file__).resolve().parents[2]
SHARED, ZOO = ROOT.parent / "shared" / "models", ROOT / "build" / "zoo"
FROM_ZOO = (
    "mobilenet_v2", "resnet18", "squeezenet", "shufflenet_v2", "mnasnet", "mlp", "word_spotter", "minilm",
    "distilbert", "mobilenet_v3_small", "yolov8n", "efficientnet_lite0", "ghostnet", "vit", "bert", "lstm_tagger",
)  # fmt: skip
NEEDS_A_LIBRARY = "superres_ortext"
TARGETS = ("host", "x86-64-v3", "x86-64-v4", "raspberry-pi-5", "x86-64-v3+openvino")
FLEET = """[farm]
output = "dist/{{model}}/{{target}}.nnd"
cache = ["{cache}"]
[[models]]
files = ["models/*.onnx"]
[targets]
names = [{targets}]
[options]
goldens = {goldens}
objective = "{objective}"
[report]
json = "batch.json"
"""
TOLD = (
    '`make bench-fleet ARGS="{arguments}"` ([tests/bench/bench_fleet.py](../../tests/bench/bench_fleet.py)): {models} '
    "models ({names}) for {boxes}, {jobs} jobs, as `nndeploy batch` runs them, two at once. The load of the machine "
    "was {load:.0f} when the first one began, with which times grow."
)
PAGE = """{header}# A fleet: figures

{told}

| call | seconds | what came of the jobs |
| --- | ---: | --- |
{rows}

Every bundle was verified byte by byte and run with the values that it keeps (`nndeploy verify`, for those of this
machine), those of the second and third call are byte for byte those of the first, and every job had one outcome in
every call. "unsupported": the box that is named could not run the model with our own runtime alone, and the job says
which node is to blame.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=26)
    parser.add_argument("--objective", default="latency", help="what placements are raced for; priority: no race")
    parser.add_argument("--write", action="store_true", help="write docs/figures/fleet-results.md")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = _models(folder / "models", options.models)
        rows = []
        first: dict[str, str] = {}
        for what, goldens, prepare in (
            ("cold: an empty cache", 1, None),
            ("again, in an empty folder: all from the cache", 1, "dist"),
            ("again as it is", 1, ""),
            ("one option of all jobs changed (`goldens`)", 0, ""),
        ):
            if prepare == "dist":
                for path in (folder / "dist", folder / ".nndeploy"):
                    shutil.rmtree(path)
            targets = ", ".join(json.dumps(one) for one in TARGETS)
            (folder / "fleet.toml").write_text(
                FLEET.format(cache=folder / "cache", targets=targets, goldens=goldens, objective=options.objective)
            )
            seconds, batch = _called(folder)
            rows.append(f"| {what} | {seconds:.1f} | {_shown(batch)} |")
            print(rows[-1], flush=True)
            assert len({job["job"] for job in batch["jobs"]}) == len(batch["jobs"]) == len(models) * len(TARGETS)
            assert all(job["status"] in ("ok", "hit", "unsupported") for job in batch["jobs"]), _failures(batch)
            found = {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("dist/*/*.nnd")}
            first = first or found
            assert (found == first) == (goldens == 1)
            if what.startswith("cold"):
                _verify(folder)
    told = TOLD.format(
        arguments=" ".join(sys.argv[1:]), models=len(models), names=", ".join(models), boxes=", ".join(TARGETS),
        jobs=len(models) * len(TARGETS), load=load,
    )  # fmt: skip
    page = PAGE.format(
        header=figures.header(figures.figure("fleet-results.md"), machine_name()),
        told=textwrap.fill(told, 120, break_long_words=False, break_on_hyphens=False), rows="\n".join(rows),
    )  # fmt: skip
    if options.write:
        (figures.FIGURES / "fleet-results.md").write_text(page)
    return 0


def _models(folder: Path, number: int) -> list[str]:
    """Copies models, with what lies beside them, and returns their names."""
    folder.mkdir()
    zoo = [ZOO / f"{name}.onnx" for name in FROM_ZOO]
    found = [path for path in (*sorted(SHARED.glob("*.onnx")), *zoo) if path.exists() and path.stem != NEEDS_A_LIBRARY][
        :number
    ]
    for path in found:
        shutil.copyfile(path, folder / path.name)
        for beside in path.parent.glob(f"{path.stem}.onnx*"):
            shutil.copyfile(beside, folder / beside.name)
    assert len(found) == number, f"only {len(found)} models are here: make zoo"
    return [path.stem for path in found]


def _called(folder: Path) -> tuple[float, Any]:
    environment = {**os.environ, "NNDEPLOY_CACHE_DIR": str(folder / "cache")}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "nndeploy", "batch", "fleet.toml", "--retry-failed"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    assert done.returncode in (0, 1), done.stderr
    return seconds, json.loads((folder / "batch.json").read_text())


def _verify(folder: Path) -> None:
    for path in folder.glob("dist/*/*.nnd"):
        runs = () if path.stem in ("host", "x86-64-v3", "x86-64-v4", "x86-64-v3+openvino") else ("--no-run",)
        done = subprocess.run(
            [sys.executable, "-m", "nndeploy", "verify", str(path), *runs], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (path, done.stderr)


def _shown(batch: Any) -> str:
    counts = Counter(job["status"] for job in batch["jobs"])
    return ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))


def _failures(batch: Any) -> list[Any]:
    return [(job["job"], job["status"], job["error"]) for job in batch["jobs"] if job["error"]]


if __name__ == "__main__":
    sys.exit(main())
