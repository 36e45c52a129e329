# SPDX-License-Identifier: Apache-2.0
"""Fleets for the bench of the farm: models that break the process that compiles them, and many that are well.

The plugin that `write_hostile_plugin` installs beside the product's does in the compile's own process what the model's
name says. What no child may write it does not write.
"""

import os
import sys
from pathlib import Path

import onnx
import onnx.parser
from figures import ROOT

sys.path.append(str(ROOT / "tests"))

from plugin_distribution import write_distribution

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1,2,3,%d}> { y = MatMul(x, w) }"""

EXPECTED = {
    "good": "ok", "garbage": "failed", "gate": "unsupported", "crash": "crash", "orphan": "crash", "hang": "timeout",
    "memory": "memory", "killed": "infra", "full": "infra",
}  # fmt: skip
"""What is to come of a model by what its name begins with."""

_ON_FULL_DISKS = """for folder in "$0"/dist/full-*; do mount -t tmpfs -o size=4k none "$folder" || exit; done; exec "$@"
"""

_PLUGIN = """
import json, os, signal, sys, time
from pathlib import Path

from nndeploy_reference.plugin import Plugin as Reference


class Plugin(Reference):
    name = "hostile"


request = Path(sys.argv[1] if len(sys.argv) > 1 else "") / "request.json"
if request.is_file():
    kind = Path(json.loads(request.read_text())["source"]).stem.partition("-")[0]
    if kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "orphan" and os.fork():
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind in ("hang", "orphan"):
        if kind == "orphan":
            os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)
    if kind == "memory":
        for _ in range(6):  # a limit of its own ends one that is too large: the sum of all is watched
            if not os.fork():
                kept = os.urandom(200 << 20)
                time.sleep(600)
        time.sleep(600)
"""


def write_model(path: Path, weight: int) -> None:
    """Writes a model that a compile takes in a second or two; each weight makes another."""
    onnx.save(onnx.parser.parse_model(MODEL % weight), path)


def write_fleet(folder: Path, num_models: int, num_variants: int = 1) -> Path:
    """Writes models, and a fleet file with a variant for each of so many numbers of threads; returns the file."""
    models = folder / "models"
    models.mkdir(parents=True)
    for number in range(num_models):
        write_model(models / f"good-{number:04}.onnx", number)
    return _fleet_file(folder, f"[matrix]\nthreads = {[one + 1 for one in range(num_variants)]}\n")


def write_hostile_fleet(folder: Path, counts: dict[str, int]) -> Path:
    """Writes so many models of each kind of `EXPECTED`, and their fleet file; returns the file."""
    models = folder / "models"
    models.mkdir(parents=True)
    for kind, count in counts.items():
        for number in range(count):
            path = models / f"{kind}-{number:04}.onnx"
            if kind == "garbage":
                path.write_bytes(b"\x08\x07garbage %d" % number)
            else:
                write_model(path, number)
    overrides = """
[[override]]
model = "hang-*"
timeout = "8s"
[[override]]
model = "memory-*"
memory = "512MiB"
[[override]]
model = "gate-*"
options = { require = ["reference=100%"], backends = "onnxruntime,reference" }
"""
    return _fleet_file(folder, overrides)


def with_full_disks(folder: Path, command: list[str]) -> list[str]:
    """Returns a command that sees file systems of 4 KiB where the bundles of the models called `full` go."""
    for model in (folder / "models").glob("full-*.onnx"):
        (folder / "dist" / model.stem).mkdir(parents=True)
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--mount", *as_root, "sh", "-c", _ON_FULL_DISKS, str(folder), *command]


def _fleet_file(folder: Path, more: str) -> Path:
    text = f'[farm]\ncache = ["{folder}/cache"]\n[[models]]\nfiles = ["models/*.onnx"]\n'
    text += '[report]\njson = "report/batch.json"\njunit = "report/junit.xml"\nmarkdown = "report/summary.md"\n'
    (folder / "fleet.toml").write_text(text + more)
    return folder / "fleet.toml"


def write_hostile_plugin(folder: Path) -> Path:
    """Writes the plugin as it is found on a search path; returns the folder for it."""
    write_distribution(folder, "hostile_plugin", _PLUGIN, "nndeploy.backends", "hostile:Plugin")
    return folder
