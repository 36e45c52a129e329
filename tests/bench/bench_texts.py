# SPDX-License-Identifier: Apache-2.0
"""Language models with random weights, written by nndeploy and by engines made for texts, on the same weights.

A model is a name and its weights, as qwen-0.5b:int4 (float32, int8, int4; of `decoders.DECODERS`). Engines are those of
`text_engines`; all but nndeploy run in the environment of `make text-engines`. One process each, all but one stopped,
in interleaved rounds: a prompt, then greedy tokens one by one. nndeploy's bundle carries a pipeline that reads scores
of the last token alone, so they are computed for that one, as by OpenVINO GenAI and llama.cpp. In float32 all have to
write the same tokens: exit code 1 where they do not. Of int8 and int4 each rounds activations in its own way, and texts
of random weights part: the table says after how many tokens. int8 is what ONNX Runtime's quantize_dynamic makes, one
scale for a matrix: nndeploy and ONNX Runtime GenAI round the activations of a product to bytes by one scale for all of
them, llama.cpp (Q8_0) by one for 32; OpenVINO GenAI has weights as nncf compresses them, and its default groups of
activations in bytes.

The roof of a token is the bytes that it reads, weights (of the table of tokens one row) and caches, by what memory
gives; that of a prompt the operations of its products, those with the table of tokens once, by the peak, of bytes where
weights are of 8 or 4 bits, as `nndeploy bench --operators` says in the same run.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from commands import NNDEPLOY, ran
from decoders import DECODERS, write_decoder
from engines import memory
from figures import ROOT
from genai_decoders import write_genai_decoder
from interleaved import Engine, Pace, race
from report import Report, add_race, bench_parser, geometric_mean, words
from written_together import write_pipeline

ENGINES = ("nndeploy", "onnxruntime-genai", "openvino-genai", "llama.cpp")
WEIGHTS = ("float32", "int8", "int4")
_WRITERS = {"openvino-genai": "openvino_decoders.py", "llama.cpp": "gguf_decoders.py"}
MEGABYTES = 512
"""So much is read to see what memory gives: no cache holds it."""
ENVIRONMENT = ROOT / "build" / "text-engines-env"


def main() -> None:
    parser = bench_parser(__doc__)
    parser.add_argument("models", nargs="*", default=["qwen-0.5b:int4"])
    parser.add_argument("--engines", type=words, default=",".join(ENGINES))
    parser.add_argument("--prompt", type=int, default=256, help="tokens")
    parser.add_argument("--steps", type=int, default=32, help="tokens that are written")
    parser.add_argument("--folder", type=Path, help="keep the models here, and take those that are there")
    parser.add_argument("--environment", type=Path, default=ENVIRONMENT, help="of the other engines")
    add_race(parser, seconds=0.0, rounds=3, threads="1,2")
    options = parser.parse_args()
    with Report(options, "speed.md", "Texts beside other engines") as report:
        with _folder(options) as folder:
            roofs = {threads: _roof(folder, threads) for threads in options.threads}
        table = report.table("model", "threads:", "engine", "prefill tokens/s:", "of its roof:", "decode tokens/s:",
                             "of its roof:", "peak MB:", "same tokens:", "version")  # fmt: skip
        ratios = list[float]()
        for model in options.models:
            name, _, weights = model.partition(":")
            if name not in DECODERS or weights not in WEIGHTS:
                parser.error(f"{model}: NAME:WEIGHTS of {', '.join(DECODERS)} and {', '.join(WEIGHTS)}")
            with _folder(options) as folder:
                files = _written(options, folder, name, weights)
                for threads in options.threads:
                    rows, faster = _raced(options, report, model, files, threads, roofs[threads])
                    for row in rows:
                        table.row(model, threads, *row)
                    ratios += faster
        report.text(f"nndeploy over each other engine, prefill and decode: {geometric_mean(ratios):.2f} in the mean.")


@contextmanager
def _folder(options: Any) -> Iterator[Path]:
    """Yields the folder of models: the one that is kept, or one of their own that goes, as each is there four times."""
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
        yield options.folder
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def _written(options: Any, folder: Path, name: str, weights: str) -> dict[str, Path]:
    """Returns the file or folder of each engine; writes those that are not there."""
    path = folder / f"{name}-{weights}.onnx"
    files = {
        "nndeploy": path.with_suffix(".nnd"),
        "onnxruntime-genai": path.with_suffix(".genai"),
        "openvino-genai": path.with_suffix(".openvino"),
        "llama.cpp": path.with_suffix(".gguf"),
    }
    if not path.exists():
        write_decoder(DECODERS[name], weights, path)
    for engine in options.engines:
        if files[engine].exists():
            continue
        if engine == "nndeploy":
            with tempfile.TemporaryDirectory() as beside:
                pipeline = write_pipeline(DECODERS[name], Path(beside), batch=1)
                _done([*NNDEPLOY, "compile", path, "--pipeline", pipeline, "-o", files[engine]])
        elif engine == "onnxruntime-genai":
            write_genai_decoder(DECODERS[name], weights, files[engine])
        else:
            writer = Path(__file__).with_name(_WRITERS[engine])
            _done([options.environment / "bin" / "python", writer, name, path, files[engine]])
    return {engine: files[engine] for engine in options.engines}


def _done(command: list[Any]) -> None:
    """Runs a command; ends this one with its last words where it fails."""
    _ = ran(command).answer


def _roof(folder: Path, threads: int) -> dict[str, Any]:
    """Returns what the processor does at most: operations and bytes of memory a second."""
    path, bundle = folder / "roof.onnx", folder / "roof.nnd"
    if not bundle.exists():
        write_decoder(DECODERS["tiny"], "float32", path)
        _done([*NNDEPLOY, "compile", path, "-o", bundle, "--pace"])
    bench = [*NNDEPLOY, "bench", bundle, "--operators", "--threads", threads, "--duration", 0.5, "--json"]
    read, clock = memory({}, MEGABYTES, threads).call, time.process_time if threads == 1 else time.perf_counter
    seconds = []
    for _ in range(5):
        began = clock()
        read()
        seconds.append(clock() - began)
    return {**json.loads(ran(bench).answer)["roof"], "bytes_per_s": MEGABYTES * 1e6 / min(seconds)}


def _shares(
    model: str, files: dict[str, Path], roof: dict[str, Any], options: Any, rates: list[float]
) -> tuple[float, float]:
    """Returns the shares of their roofs that rates of a prompt and of what follows reach."""
    name, _, weights = model.partition(":")
    decoder, data = DECODERS[name], next(iter(files.values())).with_suffix(".data").stat().st_size
    peak = 1e9 * (roof["float32_gflops_per_s"] if weights == "float32" else roof["int8_gops_per_s"])
    own, shared = decoder.heads * decoder.head_size, decoder.shared * decoder.head_size
    layer = decoder.width * (2 * own + 2 * shared + 3 * decoder.inner)
    operations = 2 * (decoder.layers * layer + decoder.width * decoder.tokens / options.prompt)
    table = decoder.tokens * decoder.width * (2 if weights == "int4" else 4)
    caches = 8 * decoder.layers * shared * (options.prompt + options.steps / 2)
    return rates[0] * operations / peak, rates[1] * (data - table + caches) / roof["bytes_per_s"]


def _raced(
    options: Any, report: Report, model: str, files: dict[str, Path], threads: int, roof: dict[str, Any]
) -> tuple[list[list[str]], list[float]]:
    """Returns the rows of a table, and how much faster nndeploy is than each other engine."""
    tokens = DECODERS[model.partition(":")[0]].tokens
    inputs = {"prompt": np.random.default_rng(3).integers(0, tokens, options.prompt), "steps": np.array(options.steps)}
    with tempfile.TemporaryDirectory() as name:
        records = {engine: Path(name) / f"{engine}.jsonl" for engine in files}
        engines = [
            Engine(
                engine, "text_engines:texts",
                {"engine": engine, "model": str(path), "threads": threads, "record": str(records[engine])},
                "" if engine == "nndeploy" else str(options.environment / "bin" / "python"),
            )
            for engine, path in files.items()
        ]  # fmt: skip
        found = race(engines, inputs, Pace(options.seconds, options.rounds, 0.0))
        lines = {engine: list(map(json.loads, records[engine].read_text().splitlines())) for engine in found.outputs}
    report.sample(model=model, threads=threads, lines=lines)
    rates = {
        engine: [
            count / statistics.median(one[what] for one in told[-options.rounds :])
            for what, count in (("first", options.prompt), ("later", 1))
        ]
        for engine, told in lines.items()
    }
    wanted, rows = found.outputs["nndeploy"][0], []
    for engine, told in lines.items():
        same = _same(found.outputs[engine][0], wanted)
        assert same == options.steps or not model.endswith(":float32"), (engine, same)
        peak = max(one["peak"] for one in told) / 1e6
        shares = _shares(model, files, roof, options, rates[engine])
        cells = [
            cell for rate, share in zip(rates[engine], shares, strict=True) for cell in (f"{rate:.1f}", f"{share:.0%}")
        ]
        rows.append([engine, *cells, f"{peak:.0f}", f"{same} of {options.steps}", found.notes[engine]])
    rows += [[engine, "", "", "", "", "", "", why] for engine, why in found.refused.items()]
    others = [rates[engine] for engine in rates if engine != "nndeploy"]
    return rows, [ours / theirs for one in others for ours, theirs in zip(rates["nndeploy"], one, strict=True)]


def _same(found: Any, wanted: Any) -> int:
    """Returns how many first tokens are the same."""
    other = np.flatnonzero(found != wanted)
    return int(other[0]) if other.size else len(wanted)


if __name__ == "__main__":
    main()
