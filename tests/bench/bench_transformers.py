# SPDX-License-Identifier: Apache-2.0
"""Transformers of usual sizes: sequences of 16 to 512, and steps of decoders. docs/figures/transformer-results.md.

    python tests/bench/bench_transformers.py [PATTERN ...] [--graphs build/transformers] [--threads 1,2] [--page FILE]

`make transformers` exports the graphs (1.2 GB). Each engine runs alone on the whole model with its best settings, known
sizes among them where there is no cache. Steps of decoders: 16 tokens one after the other, each with the caches that
the one before left, OpenVINO with caches as its own state. The last column of those is the time of a pass over the
memory of the weights and the cache, over that of a step: 1 where a step costs no more than reading what it needs. Ends
with 1 where outputs differ from ONNX Runtime's by more than the bound.
"""

import argparse
import fnmatch
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

os.environ["ORT_DISABLE_TELEMETRY"] = "1"
sys.path.append(str(Path(__file__).resolve().parents[1] / "zoo"))

import onnx
from exporting.feed import feed_of
from figures import figure, header
from interleaved import Engine, Pace, Race, largest_error, race
from native_engines import machine_name

ROOT = Path(__file__).resolve().parents[2]
PEERS = ("onnxruntime", "openvino")
LENGTHS = (1, 16, 128, 512)
PASTS = (16, 128, 512)
STEPS = 16
TOKENS = 4000
BOUND = 2e-4
"""Of the largest value: six layers of float32 sums in three orders."""


class Row(NamedTuple):
    """One measurement: how often as fast as the faster peer, and of steps the share of what memory allows."""

    name: str
    what: str
    threads: int
    native: float
    peers: dict[str, float]
    ratio: float
    error: float
    memory: float | None = None


def main() -> None:
    """Prints a line a measurement, and writes the page."""
    options = _options()
    names = sorted(path.stem for path in options.graphs.glob("*.onnx"))
    asked = [one for one in names if any(fnmatch.fnmatch(one, pattern) for pattern in options.patterns or ["*"])]
    if not asked:
        sys.exit("nothing to measure: `make transformers` exports the graphs")
    rows: list[Row] = []
    for name in asked:
        for threads in map(int, options.threads.split(",")):
            for row in _rows(options.graphs / f"{name}.onnx", threads, Pace(options.seconds, options.rounds)):
                rows.append(row)
                print(_line(row), flush=True)
    if options.page:
        options.page.write_text(header(figure("transformer-results.md"), machine_name()) + _page(rows))
    print(*_summary(rows), sep="\n")
    sys.exit(any(row.error > BOUND for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="transformers of usual sizes against ONNX Runtime and OpenVINO",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("patterns", nargs="*", help="names, with * and ?; none: all")
    parser.add_argument("--graphs", type=Path, default=ROOT / "build" / "transformers")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=0.5, help="an engine and round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--page", type=Path, help="where the page is written")
    return parser.parse_args()


def _rows(path: Path, threads: int, pace: Pace) -> Iterator[Row]:
    """Yields what a graph is measured for."""
    model = onnx.load(path)
    symbols = {dim.dim_param for one in model.graph.input for dim in one.type.tensor_type.shape.dim}
    if "past_sequence_length" in symbols:
        for length in LENGTHS[1:]:
            yield _whole(path, _sizes(length, 0), f"{length} tokens", threads, pace, knows_sizes=False)
        weights = sum(math.prod(one.dims) * 4 for one in model.graph.initializer if len(one.dims) > 1)
        embedded = {name for node in model.graph.node if node.op_type == "Gather" for name in node.input[:1]}
        read_elsewhere = {name for node in model.graph.node if node.op_type != "Gather" for name in node.input}
        weights -= sum(
            math.prod(one.dims) * 4 for one in model.graph.initializer if one.name in embedded - read_elsewhere
        )
        for past in PASTS:
            yield _steps(path, past, weights, threads, pace)
    elif "sequence_length" in symbols or "encoder_sequence_length" in symbols:
        for length in LENGTHS[1:]:
            yield _whole(path, _sizes(length, 0), f"{length} tokens", threads, pace)
    else:
        yield _whole(path, _sizes(1, 0), "an image" if path.stem.startswith("vit") else "30 s", threads, pace)


def _sizes(length: int, past: int) -> dict[str, int]:
    return {
        "batch_size": 1, "sequence_length": length, "encoder_sequence_length": length, "past_sequence_length": past,
        "past_sequence_length + sequence_length": past + length, "past_sequence_length + 1": past + length,
        "num_channels": 3, "height": 224, "width": 224, "feature_size": 80, "nb_max_frames": 3000, "num_choices": 1,
    }  # fmt: skip


def _whole(path: Path, sizes: dict[str, int], what: str, threads: int, pace: Pace, *, knows_sizes: bool = True) -> Row:
    asked = {"model": str(path), "threads": threads, "knows_sizes": knows_sizes}
    engines = [Engine(name, f"native_engines:{name}", asked) for name in ("native", *PEERS)]
    return _row(path, what, threads, race(engines, feed_of(path, sizes, tokens=TOKENS), pace), 1)


def _steps(path: Path, past: int, weights: float, threads: int, pace: Pace) -> Row:
    inputs = feed_of(path, _sizes(1, past), tokens=TOKENS)
    caches = sum(array.nbytes for name, array in inputs.items() if name.startswith("past"))
    asked = {"model": str(path), "threads": threads, "steps": STEPS}
    engines = [Engine(name, f"decoder_engines:{name}", asked) for name in ("native", *PEERS)]
    reads = {"megabytes": (weights + caches) / 1e6, "threads": threads}
    found = race([*engines, Engine("memory", "decoder_engines:memory", reads)], inputs, pace)
    return _row(path, f"a step behind {past}", threads, found, STEPS)


def _row(path: Path, what: str, threads: int, found: Race, calls: int) -> Row:
    """Returns the row of a race.

    Raises:
        SystemExit: native refuses the model, or no peer takes it.
    """
    if "native" not in found.outputs or "onnxruntime" not in found.outputs:
        sys.exit(f"{path.stem}: {found.refused}")
    error = largest_error(found.outputs["native"], found.outputs["onnxruntime"])
    times = {name: found.ms(name) / calls for name in PEERS if name in found.outputs}
    memory = found.ratio("native", ["memory"]) * calls if "memory" in found.outputs else None
    native = found.ms("native") / calls
    return Row(path.stem, what, threads, native, times, found.ratio("native", PEERS), error, memory)


HEADINGS = (
    "| model | what | threads | native ms | ONNX Runtime ms | OpenVINO ms | faster / native | error | of memory |\n"
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def _line(row: Row) -> str:
    peers = " | ".join(f"{row.peers[name]:.3f}" if name in row.peers else "refused" for name in PEERS)
    memory = "" if row.memory is None else f"{row.memory:.2f}"
    return (
        f"| {row.name} | {row.what} | {row.threads} | {row.native:.3f} | {peers} | {row.ratio:.2f} | {row.error:.1e} "
        f"| {memory} |"
    )


def _summary(rows: Sequence[Row]) -> Iterator[str]:
    for threads in sorted({row.threads for row in rows}):
        for what, some in (
            ("sequences", [row for row in rows if row.memory is None and row.threads == threads]),
            ("steps", [row for row in rows if row.memory is not None and row.threads == threads]),
        ):
            if some:
                mean = math.exp(sum(math.log(row.ratio) for row in some) / len(some))
                least = min(some, key=lambda row: row.ratio)
                yield (
                    f"{threads} thread{'s' * (threads > 1)}, {what}: geometric mean {mean:.2f} of {len(some)}, "
                    f"the least {least.ratio:.2f} ({least.name}, {least.what})"
                )


def _page(rows: Sequence[Row]) -> str:
    lines = (line.strip() for line in (__doc__ or "").split("\n\n")[2].splitlines())
    return "\n".join(["# Transformers of usual sizes", "", *lines, "", *_summary(rows), "", HEADINGS,
                      *map(_line, rows)]) + "\n"  # fmt: skip


if __name__ == "__main__":
    main()
