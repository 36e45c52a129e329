# SPDX-License-Identifier: Apache-2.0
"""What was asked for on the command line; handed to every child as JSON."""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpucheck.rows import GPU_TIERS

ROOT = Path(__file__).resolve().parents[3]
MODELS = ROOT.parent / "shared" / "models"
TOTAL_SECONDS = 540.0


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run; paths are text, "" for none. `workdir` is shared by all children."""

    only: tuple[str, ...] = ()
    tiers: tuple[str, ...] = GPU_TIERS
    match: str = ""
    total_seconds: float = TOTAL_SECONDS
    jobs: int = 1
    json_file: str = ""
    log_file: str = ""
    target_out: str = ""
    models: str = ""
    bundles: tuple[str, ...] = ()
    all_networks: bool = False
    tune: bool = False
    torch_compile: bool = False
    workdir: str = ""


def options_to_json(options: Options) -> str:
    """Returns the options as text for a child's command line."""
    return json.dumps(dataclasses.asdict(options))


def options_from_json(text: str) -> Options:
    """Returns the options that `options_to_json` wrote."""
    data: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in json.loads(text).items()}
    return Options(**data)


def options_from_arguments(arguments: Sequence[str] | None, stage_names: Sequence[str], num_cores: int) -> Options:
    """Returns the options of a command line; a wrong one ends the process with status 2, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="gpu_check.py", description="conformance, numbers and speed of the GPU tiers on this machine"
    )
    add = parser.add_argument
    add("--only", default="", metavar="STAGES", help=f"comma-separated, of: {','.join(stage_names)}")
    add("--tiers", default=",".join(GPU_TIERS), help="comma-separated, of: %(default)s")
    add("--match", default="", metavar="REGEX", help="only items whose name matches")
    add("--total", type=float, default=TOTAL_SECONDS, metavar="SECONDS", help="limit of the whole (%(default)g)")
    add("--jobs", type=int, default=max(1, min(8, num_cores // 2)), help="processes for what is not timed")
    add("--json", default="", metavar="FILE", help="write all rows, with all figures, as JSON")
    add("--log", default="", metavar="FILE", help="append what the libraries print, and the traces of errors")
    add("--target-out", default="", metavar="FILE", help="write the probed target, with cuDNN's descriptor, as TOML")
    add("--models", default=str(MODELS) if MODELS.is_dir() else "", metavar="DIR", help="real models, with index.json")
    add("--bundle", action="append", default=[], metavar="FILE", help="run a bundle that was built elsewhere, too")
    add("--all-networks", action="store_true", help="also the light networks with hundreds of megabytes of weights")
    add("--tune", action="store_true", help="measure Triton's tiles in every stage, not only in `kernels`; slow")
    add("--torch-compile", action="store_true", help="torch.compile as a further peer of every kernel; slow")
    got = parser.parse_args(arguments)
    only, tiers = _names(got.only), _names(got.tiers)
    for wrong in [name for name in only if name not in stage_names]:
        parser.error(f"no stage is called {wrong!r}: {', '.join(stage_names)}")
    for wrong in [name for name in tiers if name not in GPU_TIERS]:
        parser.error(f"no tier is called {wrong!r}: {', '.join(GPU_TIERS)}")
    return Options(
        only, tiers, got.match, got.total, max(1, got.jobs), _absolute(got.json), _absolute(got.log),
        _absolute(got.target_out),
        _absolute(got.models), tuple(map(_absolute, got.bundle)), got.all_networks, got.tune, got.torch_compile,
    )  # fmt: skip


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _absolute(path: str) -> str:
    return str(Path(path).resolve()) if path else ""
