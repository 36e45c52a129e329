# SPDX-License-Identifier: Apache-2.0
"""Exports graphs as those who deploy do, with random weights from seeds: NAME.onnx, inputs/NAME.npz, README.md.

    build/zoo-env/bin/python tests/zoo/export.py --out build/zoo [--small] [--usual] [--list] [PATTERN ...]

Runs in an environment of its own (`make zoo` makes it from requirements.txt). A graph that is there already is kept
unless a pattern names it and `--again` is given. Each is run once by ONNX Runtime: outputs must be finite and not
constant, and the milliseconds of a call on one thread are noted in index.json, from which README.md is written.
"""

import argparse
import fnmatch
import json
import multiprocessing
import os
import sys
from collections.abc import Mapping
from pathlib import Path

os.environ |= {"ORT_DISABLE_TELEMETRY": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
os.environ.setdefault("YOLO_CONFIG_DIR", str(Path(sys.prefix) / "ultralytics"))
os.environ |= {"YOLO_AUTOINSTALL": "false", "YOLO_OFFLINE": "true", "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"}
sys.path.insert(0, str(Path(__file__).resolve().parent))

from exporting.cut import CUT
from exporting.families import listed, of_usual_sizes
from exporting.graphs import Graph, Scale
from exporting.one_graph import export_one


def main() -> None:
    """Exports what is asked for; ends with 1 where a graph could not be made."""
    options = _options()
    names = _names(options.patterns, _offered(options))
    if options.list:
        print("\n".join(names))
        return
    options.out.mkdir(parents=True, exist_ok=True)
    failed = [name for name in names if not _made(name, options.out, Scale(options.small), options.again)]
    if failed:
        sys.exit(f"not exported: {', '.join(failed)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="export graphs with random weights")
    parser.add_argument("patterns", nargs="*", help="names, with * and ?; none: all")
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    parser.add_argument("--small", action="store_true", help="the cut that is kept in the repository")
    parser.add_argument("--usual", action="store_true", help="transformers of usual sizes, 1.5 GB, and not the zoo")
    parser.add_argument("--again", action="store_true", help="export also what is there already")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    options = parser.parse_args()
    options.patterns = options.patterns or ["*"]
    return options


def _offered(options: argparse.Namespace) -> dict[str, Graph]:
    """Returns the graphs that may be asked for by their names."""
    if options.usual:
        return of_usual_sizes()
    return {name: one for name, one in listed().items() if name in CUT or not options.small}


def _names(patterns: list[str], offered: Mapping[str, Graph]) -> list[str]:
    """Returns the graphs that are asked for, each after those that it is made from."""
    graphs = {**listed(), **offered}
    asked = {name for name in offered if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}
    asked |= {source for name in asked for source in graphs[name].after}
    for pattern in patterns:
        if not fnmatch.filter(offered, pattern):
            sys.exit(f"no graph is called {pattern!r}; `--list` prints all")
    return [name for name in graphs if name in asked]


def _made(name: str, out: Path, scale: Scale, again: bool) -> bool:
    """Exports one graph in a child, so that a crash or what it leaves in memory stays there; returns success."""
    if (out / f"{name}.onnx").exists() and _noted(out).get(name) and not again:
        return True
    child = multiprocessing.get_context("fork").Process(target=export_one, args=(name, out, scale))
    child.start()
    child.join()
    if child.exitcode:
        for left in (out / f"{name}.onnx", out / f"{name}.onnx.data"):
            left.unlink(missing_ok=True)
        print(f"{name}: FAILED ({child.exitcode})", flush=True)
    return child.exitcode == 0


def _noted(out: Path) -> dict[str, object]:
    index = out / "index.json"
    return json.loads(index.read_text()) if index.exists() else {}


if __name__ == "__main__":
    main()
