# SPDX-License-Identifier: Apache-2.0
"""Transformers of usual sizes, sequences of 16 to 512 tokens and steps of decoders, against ONNX Runtime and OpenVINO.

`make transformers` exports the graphs (1.2 GB). Each engine runs alone on the whole model with its best settings, known
sizes among them where there is no cache. Steps of decoders: 16 tokens one after the other, each with the caches that
the one before left, OpenVINO with caches as its own state. "of memory" is the time of a pass over the memory of the
weights and the cache, over that of a step: 1 where a step costs no more than reading what it needs. Exit code 1 where
outputs differ from ONNX Runtime's by more than 2e-4 of the largest value.
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import onnx
from figures import ROOT
from interleaved import Array, Engine, Pace, race
from report import Report, add_race, bench_parser, geometric_mean, matching

sys.path.append(str(ROOT / "tests" / "zoo"))

from exporting.feed import feed_of

ENGINES = ("native", "onnxruntime", "openvino")
LENGTHS, PASTS, STEPS, TOKENS = (16, 128, 512), (16, 128, 512), 16, 4000
BOUND = 2e-4
"""Six layers of float32 sums in three orders."""


class Case(NamedTuple):
    """What is measured of a graph: its inputs, calls a run, and the bytes that a step has to read."""

    what: str
    inputs: dict[str, Array]
    knows_sizes: bool = True
    steps: int = 1
    reads: float = 0.0


def main() -> None:
    parser = bench_parser(__doc__)
    parser.add_argument("patterns", nargs="*", help="names, with * and ?; none: all")
    parser.add_argument("--graphs", type=Path, default=ROOT / "build" / "transformers")
    add_race(parser, seconds=0.5, threads="1,2")
    options = parser.parse_args()
    names = matching(sorted(path.stem for path in options.graphs.glob("*.onnx")), options.patterns)
    if not names:
        parser.error("nothing to measure: `make transformers` exports the graphs")
    ratios: dict[tuple[int, str], list[float]] = {}
    with Report(options, "speed.md", "Transformers") as report:
        table = report.table("model", "what", "threads:", *(f"{one} ms:" for one in ENGINES), "faster / native:",
                             "error:", "of memory:")  # fmt: skip
        for name in names:
            for case in _cases(options.graphs / f"{name}.onnx"):
                for threads in options.threads:
                    engines = _engines(options.graphs / f"{name}.onnx", case, threads)
                    found = race(engines, case.inputs, Pace(options.seconds, options.rounds), spared=("openvino",))
                    memory = f"{case.steps * found.ratio('native', ['memory']):.2f}" if case.reads else ""
                    found.outputs.pop("memory", None)
                    error = found.drop_others(found.outputs["onnxruntime"], BOUND, ["native"])["native"]
                    ratio = found.ratio("native", ENGINES[1:])
                    ratios.setdefault((threads, "steps" if case.reads else "sequences"), []).append(ratio)
                    times = (f"{found.ms(one) / case.steps:.3f}" if one in found.outputs else "-" for one in ENGINES)
                    table.row(name, case.what, threads, *times, f"{ratio:.2f}", f"{error:.1e}", memory)
                    report.sample(model=name, what=case.what, threads=threads, rounds=found.rounds)
        report.line()
        for (threads, what), some in sorted(ratios.items()):
            mean = geometric_mean(some)
            report.line(f"* {threads} threads, {what}: geometric mean {mean:.2f} of {len(some)}, least {min(some):.2f}")


def _engines(path: Path, case: Case, threads: int) -> list[Engine]:
    told = {"model": str(path), "threads": threads}
    if not case.reads:
        told["knows_sizes"] = case.knows_sizes
        return [Engine(name, "engines:whole", {**told, "engine": name}) for name in ENGINES]
    told["steps"] = case.steps
    reads = {"megabytes": case.reads / 1e6, "threads": threads}
    return [*(Engine(name, "engines:steps", {**told, "engine": name}) for name in ENGINES),
            Engine("memory", "engines:memory", reads)]  # fmt: skip


def _cases(path: Path) -> Iterator[Case]:
    model = onnx.load(path)
    symbols = {dim.dim_param for one in model.graph.input for dim in one.type.tensor_type.shape.dim}
    is_decoder = "past_sequence_length" in symbols
    if not is_decoder and symbols.isdisjoint({"sequence_length", "encoder_sequence_length"}):
        yield Case("an image" if path.stem.startswith("vit") else "30 s", _feed(path, 1, 0))
        return
    for length in LENGTHS:
        yield Case(f"{length} tokens", _feed(path, length, 0), knows_sizes=not is_decoder)
    for past in PASTS if is_decoder else ():
        inputs = _feed(path, 1, past)
        caches = sum(array.nbytes for name, array in inputs.items() if name.startswith("past"))
        yield Case(f"a step behind {past}", inputs, steps=STEPS, reads=_weight_bytes(model.graph) + caches)


def _weight_bytes(graph: onnx.GraphProto) -> float:
    """Returns the bytes of the weights that a step reads: of embeddings, which are gathered, hardly any."""
    embedded = {name for node in graph.node if node.op_type == "Gather" for name in node.input[:1]}
    read = {name for node in graph.node if node.op_type != "Gather" for name in node.input}
    matrices = (one for one in graph.initializer if len(one.dims) > 1 and one.name not in embedded - read)
    return 4.0 * sum(math.prod(one.dims) for one in matrices)


def _feed(path: Path, length: int, past: int) -> dict[str, Array]:
    sizes = {
        "batch_size": 1, "sequence_length": length, "encoder_sequence_length": length, "past_sequence_length": past,
        "past_sequence_length + sequence_length": past + length, "past_sequence_length + 1": past + length,
        "num_channels": 3, "height": 224, "width": 224, "feature_size": 80, "nb_max_frames": 3000, "num_choices": 1,
    }  # fmt: skip
    feed: dict[str, Array] = feed_of(path, sizes, tokens=TOKENS)
    return feed


if __name__ == "__main__":
    main()
