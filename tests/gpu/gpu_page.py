# SPDX-License-Identifier: Apache-2.0
"""Writes docs/figures/gpu-results.md from what `make gpu-check ARGS="--json gpu.json"` found on a machine with a GPU.

python tests/gpu/gpu_page.py gpu.json [--commit COMMIT]
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "bench"))

import figures

Row = Mapping[str, Any]
RESULTS = ("ok", "refused", "WRONG", "FAILED", "CRASHED", "TIMED OUT", "not run")
PAGE = """{header}# On a GPU: figures

`make gpu-check ARGS="{arguments} --json gpu.json"` on a machine with {gpu}, then
`python tests/gpu/gpu_page.py gpu.json`; [gpu-check](../internals/gpu-check.md) says what each stage does and how its
rows are to be read. {versions}. Not run is what the time that was granted did not reach, or what that machine has no
library for.

| stage | tier | {results} |
| --- | --- |{dashes}
{counts}

What was wrong, and what became of it, stands in [cudnn](../internals/cudnn.md#what-a-gpu-showed):

{wrong}

## Networks

Each compiled on that machine for that machine, inputs and outputs on the host, medians of turns; the peer is ONNX
Runtime on the machine's CPU.

| network | tier | ms | times the peer |
| --- | --- | ---: | ---: |
{speed}

## Kernels

A `graph` is the GPU's work alone, of a CUDA graph; without it a call with arrays on the GPU.

| problem | by | ms | times the best peer |
| --- | --- | ---: | ---: |
{kernels}
"""


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("found", type=Path, help="what gpu-check wrote")
    parser.add_argument("--commit", default=figures.tree(), help="the commit that was checked; default: this one")
    options = parser.parse_args()
    found = json.loads(options.found.read_text(encoding="utf-8"))
    text = page(found["rows"], found["options"], options.commit)
    (figures.FIGURES / "gpu-results.md").write_text(text, encoding="utf-8")


def page(rows: list[Row], options: Mapping[str, Any], commit: str) -> str:
    """Returns the page about rows of gpu-check, called with `options`."""
    probed = {row["item"]: row["facts"] for row in rows if row["stage"] == "probe"}
    gpu, versions = probed["cuda:0"]["name"], probed["versions"]
    named = ("onnxruntime", "nvidia-cudnn-cu13", "triton", "torch", "cuda-bindings")
    one, wrong = figures.figure("gpu-results.md"), [row for row in rows if row["status"] == "WRONG"]
    return PAGE.format(
        header=figures.header_line(one, figures.today(), gpu, commit),
        arguments=f"--tiers {','.join(options['tiers'])} --total {options['total_seconds']:g}",
        gpu=f"one {gpu}",
        versions=", ".join(f"{name} {versions[name]}" for name in named if versions.get(name)),
        results=" | ".join(RESULTS),
        dashes=" ---: |" * len(RESULTS),
        counts="\n".join(_counts(rows)),
        wrong="\n".join("- {stage}, {item}, {backend}".format(**row) for row in wrong) or "nothing",
        speed="\n".join(_timed(row for row in rows if row["stage"] == "speed")),
        kernels="\n".join(_timed(row for row in rows if row["stage"] == "kernels")),
    )


def _counts(rows: list[Row]) -> Iterable[str]:
    counts = Counter((row["stage"], row["backend"], row["status"]) for row in rows if row["stage"] != "probe")
    for stage, backend in dict.fromkeys((stage, backend) for stage, backend, _ in counts):
        numbers = " | ".join(str(counts[stage, backend, result] or "") for result in RESULTS)
        yield f"| {stage} | {backend} | {numbers} |"


def _timed(rows: Iterable[Row]) -> Iterable[str]:
    for row in rows:
        if row["ms"] is not None:
            ratio = f"{row['ratio']:.2f}" if row["ratio"] else ""
            yield f"| {row['item']} | {row['backend']} | {row['ms']:.4g} | {ratio} |"


if __name__ == "__main__":
    main()
