# SPDX-License-Identifier: Apache-2.0
"""Language models with random weights: what a compile takes, then load, memory, prefill and decode beside engines.

A model is a name and its weights, as qwen-0.5b:int4 (of `decoders.DECODERS`; float32, float16, int8, int4). Each is
compiled by default, with nothing from a cache; memory of a compile is that of all its processes together. Then each
engine runs in a fresh process on one thread: `--prompt` tokens without a cache, then `--steps` tokens one by one, each
behind the caches that the one before left. Memory of one process is what it holds after that; of two, both together,
pages that they share counted once. Logits are compared with ONNX Runtime's: exit code 1 where they differ by more than
the weights explain. With `--together 1,4,8` texts are then written one by one and several in one call.
"""

import json
import operator
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
from decoders import DECODERS, WEIGHTS, decoder_inputs, write_decoder
from interleaved import largest_error
from report import Report, bench_parser, numbers, words
from whole_compile import whole_compile
from written_together import written

BOUNDS = {"float32": 1e-3, "float16": 3e-2, "int8": 0.1, "int4": 0.1}
"""Of the largest logit. Engines round activations to 8 bits each in its own way, and layers pass that on."""
ENGINES = ("nndeploy", "onnxruntime", "openvino")


def main() -> None:
    parser = bench_parser(__doc__)
    parser.add_argument("models", nargs="*", default=["qwen-0.5b:int4"])
    parser.add_argument("--engines", type=words, default=",".join(ENGINES))
    parser.add_argument("--prompt", type=int, default=64, help="tokens")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--together", type=numbers, default="1", help="texts in one call; several: beside each other")
    parser.add_argument("--folder", type=Path, help="keep the models and bundles here")
    options = parser.parse_args()
    compiles, runs, texts = [], [], []
    with Report(options, "speed.md", "Language models") as report, ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for model in options.models:
            name, _, weights = model.partition(":")
            if name not in DECODERS or weights not in WEIGHTS:
                parser.error(f"{model}: NAME:WEIGHTS of {', '.join(DECODERS)} and {', '.join(WEIGHTS)}")
            path = folder / f"{name}-{weights}.onnx"
            megabytes = write_decoder(DECODERS[name], weights, path) / 1e6
            one = whole_compile(path, path.with_suffix(".nnd"))
            assert one is not None
            size = path.with_suffix(".nnd").stat().st_size / 1e6
            figures = (megabytes, one.processor, one.wall, one.peak / 1e6, size)
            compiles.append([model, *(f"{figure:.0f}" for figure in figures), f"{one.peak / 1e6 / megabytes:.1f}"])
            report.sample(model=model, megabytes=megabytes, compile=asdict(one))
            runs += [[model, *row] for row in _runs(options, path, name, weights, megabytes)]
            texts += [[model, *row] for row in _texts(options, path.with_suffix(".nnd"), name)]
            if options.folder is None:
                for file in folder.iterdir():
                    file.unlink()
        table = report.table(
            "model", "weights MB:", "processor s:", "wall s:", "peak MB:", "bundle MB:", "peak / weights:"
        )
        for row in compiles:
            table.row(*row)
        table = report.table("model", "engine", "load s:", "prefill tokens/s:", "decode tokens/s:", "held / weights:",
                             "two / weights:", "error:")  # fmt: skip
        for row in runs:
            table.row(*row)
        table = report.table("model", "texts in one call:", "tokens/s:", "tokens/processor s:", "of texts the same:")
        for row in texts:
            table.row(*row)


def _runs(options: Any, path: Path, name: str, weights: str, megabytes: float) -> Iterator[list[str]]:
    """Yields what each engine takes, ONNX Runtime's logits first to compare with."""
    inputs = path.with_name("inputs.npz")
    np.savez(inputs, **decoder_inputs(DECODERS[name], weights, 1, options.prompt, 0))  # type: ignore[arg-type]
    wanted: list[Any] = []
    for engine in sorted(options.engines, key=lambda one: one != "onnxruntime"):
        file, out = path.with_suffix(".nnd") if engine == "nndeploy" else path, path.with_name("logits.npy")
        command = [sys.executable, Path(__file__).with_name("decoder_run.py"), engine, file, inputs, out,
                   options.steps, options.threads]  # fmt: skip
        for read in (file, path.with_suffix(".data")):
            _cached(read)
        told, held = _together(command, 1)
        logits = np.load(out)
        wanted = wanted or [logits]
        error = largest_error([logits], wanted)
        assert error <= BOUNDS[weights], (path.name, engine, error)
        _, both = _together(command, 2)
        shares = (f"{one / 1e6 / megabytes:.2f}" for one in (held, both))
        yield [
            engine,
            f"{told['load']:.2f}",
            f"{told['prefill']:.1f}",
            f"{told['decode']:.1f}",
            *shares,
            f"{error:.0e}",
        ]


def _texts(options: Any, bundle: Path, name: str) -> Iterator[list[str]]:
    """Yields what it takes to write some texts, more and more of them in one call."""
    wanted: list[list[int]] = []
    for batch in options.together if len(options.together) > 1 else ():
        found = written(DECODERS[name], bundle, batch, options.threads)
        wanted = wanted or found.texts
        same = sum(map(operator.eq, found.texts, wanted))
        yield [str(batch), f"{found.rate:.1f}", f"{found.per_processor:.1f}", f"{same} of {len(wanted)}"]


def _cached(path: Path) -> None:
    """Reads a file, so that no engine pays for the disk."""
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def _together(command: list[Any], count: int) -> tuple[dict[str, float], int]:
    """Returns what one of `count` processes said, and the bytes that they hold together when all have run."""
    processes = []
    for _ in range(count):
        processes.append(
            subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        said = processes[-1].stdout.readline()  # they run one after the other, and wait for each other
    held = sum(_proportional_bytes(one.pid) for one in processes)
    for one in processes:
        one.communicate("end\n")
        assert one.returncode == 0, command
    return json.loads(said), held


def _proportional_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
