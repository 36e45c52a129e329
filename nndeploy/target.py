# SPDX-License-Identifier: Apache-2.0
"""A target: what is known of the box that will run a bundle.

`host_target` describes this machine, `target_from_toml` reads configs/targets/*.toml, `target_to_toml` writes what
`nndeploy probe` found. `unmet` says why a host cannot take an artifact.
"""

import os
import platform
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nndeploy.errors import DataError, MissingInputError, did_you_mean

X86_64_LEVELS: dict[str, tuple[str, ...]] = {
    "x86-64-v2": ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"),
    "x86-64-v3": ("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
"""Linux flag names that each level adds. Source: x86-64 psABI, micro-architecture levels."""


@dataclass(frozen=True, slots=True)
class Target:
    """A box: `arch` as `uname -m` says, `cpu_features` Linux flag names sorted, `caches` level -> bytes a core."""

    name: str
    arch: str
    cpu_features: tuple[str, ...] = ()
    caches: tuple[tuple[str, int], ...] = ()
    num_cores: int = 0
    is_host: bool = False

    @property
    def level(self) -> str:
        """The highest x86-64 level that the features reach, or the architecture's name."""
        reached, have = self.arch, set(self.cpu_features)
        if self.arch == "x86_64":
            for level, features in X86_64_LEVELS.items():
                if not have.issuperset(features):
                    break
                reached = level
        return reached


def unmet(requires: Mapping[str, Any], host: Target) -> str:
    """Returns why `host` does not meet an artifact's `requires`, or "" when it does."""
    if (arch := requires.get("arch")) not in (None, host.arch):
        return f"needs {arch}, this machine is {host.arch}"
    missing = sorted(set(requires.get("cpu_features", ())) - set(host.cpu_features))
    return f"needs CPU features this machine lacks: {', '.join(missing)}" if missing else ""


@cache
def host_target() -> Target:
    """Returns this machine as a target; what cannot be read is left empty."""
    return Target(
        name="host",
        arch=platform.machine(),
        cpu_features=_host_features(),
        caches=_host_caches(),
        num_cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        is_host=True,
    )


def target_from_toml(path: Path) -> Target:
    """Returns the target that a TOML file describes.

    Raises:
        MissingInputError: there is no such file.
        DataError: the file is no TOML, lacks `arch`, or has an unknown or mistyped key.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as err:
        raise MissingInputError("no such target file", where=str(path)) from err
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as err:
        raise DataError(f"not a target file: {err}", where=str(path)) from err
    known: dict[str, type] = {
        "name": str, "arch": str, "level": str, "cpu_features": list, "caches": dict, "num_cores": int,
    }  # fmt: skip
    for key, value in data.items():
        if key not in known:
            raise DataError(f"unknown key {key!r}", where=str(path), hint=did_you_mean(key, known))
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise DataError(f"{key} must be a {known[key].__name__}, not {value!r}", where=str(path))
    if "arch" not in data:
        raise DataError("the key 'arch' is missing", where=str(path), hint='for example arch = "x86_64"')
    features = set(data.get("cpu_features", ())) | set(_features_of_level(data.get("level"), str(path)))
    if not all(isinstance(f, str) for f in features):
        raise DataError("cpu_features must be a list of strings", where=str(path))
    caches = data.get("caches", {})
    if not all(isinstance(v, int) and v > 0 for v in caches.values()):
        raise DataError("caches must map a level to bytes", where=str(path))
    return Target(
        name=data.get("name", path.stem),
        arch=data["arch"],
        cpu_features=tuple(sorted(features)),
        caches=tuple(sorted(caches.items())),
        num_cores=data.get("num_cores", 0),
    )


def target_to_toml(target: Target) -> str:
    """Returns the TOML text of a target; `target_from_toml` of it gives an equal target, but for `is_host`."""
    lines = [f'name = "{target.name}"', f'arch = "{target.arch}"']
    if target.num_cores:
        lines.append(f"num_cores = {target.num_cores}")
    if target.cpu_features:
        lines += ["cpu_features = [", *(f'    "{feature}",' for feature in target.cpu_features), "]"]
    if target.caches:
        lines += ["", "[caches]", *(f"{level} = {size}" for level, size in target.caches)]
    return "\n".join(lines) + "\n"


def _features_of_level(level: str | None, where: str) -> tuple[str, ...]:
    if level is None:
        return ()
    if level not in X86_64_LEVELS:
        raise DataError(f"unknown level {level!r}", where=where, hint=did_you_mean(level, X86_64_LEVELS))
    names = list(X86_64_LEVELS)
    return tuple(f for name in names[: names.index(level) + 1] for f in X86_64_LEVELS[name])


def _host_features() -> tuple[str, ...]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return tuple(sorted(value.split()))
    return ()


def _host_caches() -> tuple[tuple[str, int], ...]:
    sizes: dict[str, int] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind = (index / "type").read_text().strip()
            level = (index / "level").read_text().strip()
            size = (index / "size").read_text().strip()
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K"):
            sizes[f"l{level}"] = int(size[:-1]) * 1024
    return tuple(sorted(sizes.items()))
