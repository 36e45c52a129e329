# SPDX-License-Identifier: Apache-2.0
"""A target: what is known of the box that will run a bundle.

`host_target` describes this machine, `target_from_toml` reads configs/targets/*.toml, `target_to_toml` writes what
`nndeploy probe` found. `unmet` says why a host cannot take an artifact. Law: `target_from_toml` of what
`target_to_toml` wrote gives an equal target, but for `is_host`.
"""

import json
import os
import platform
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from nndeploy.cuda.facts import cuda_unavailable, gpu_facts
from nndeploy.errors import DataError, did_you_mean, lacks_files
from nndeploy.files.toml_file import toml_from_file
from nndeploy.target.place_limits import PlaceLimit, places_from_tables

X86_64_LEVELS: dict[str, tuple[str, ...]] = {
    "x86-64-v2": ("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"),
    "x86-64-v3": ("abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
"""Linux flag names that each level adds. Source: x86-64 psABI, micro-architecture levels."""

USUAL_FEATURES = {"x86_64": X86_64_LEVELS["x86-64-v2"], "aarch64": ("asimd", "fp")}
"""What a processor has of which a target file says the architecture alone: x86-64 since 2009, and every Armv8-A.

Source: x86-64 psABI, micro-architecture levels; Arm Architecture Reference Manual, Armv8-A, standard implementation.
"""
ARCHS = {"amd64": "x86_64", "x86-64": "x86_64", "arm64": "aarch64"}
"""What others call an architecture -> what `uname -m` says."""

FLOPS_PER_S = 100e9
BYTES_PER_S = 10e9
"""Those of one ordinary core; where a target says no others only the ratio between operators means something."""
ANY_VERSION = ""
"""The version of a library that a box has where nobody says which one it is."""
MAX_GPUS = 64
MAX_RATE = 10**18
_CAPABILITY = re.compile(r"[0-9]{1,2}\.[0-9]")
_BARE_KEY = re.compile(r"[A-Za-z0-9_]{1,64}")


@dataclass(frozen=True, slots=True)
class Gpu:
    """An NVIDIA GPU: `compute_capability` as "8.9"; `cudnn` is cuDNN's device descriptor as sorted pairs.

    A value of the descriptor is an int, a str or a tuple of ints. Source: CUDA C++ Programming Guide, compute
    capabilities; cuDNN backend API, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR.
    """

    name: str
    compute_capability: str
    memory_bytes: int = 0
    cudnn: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """A box: `arch` as `uname -m` says, `cpu_features` Linux flag names sorted, `caches` level -> bytes a core.

    `flops_per_s` and `bytes_per_s` are what its operators reach at best on the threads that run them, 0: not known.

    `gpus` stand in the order of their CUDA device numbers. `libraries` gives backend -> version of its library there,
    or `ANY_VERSION`. `places` are those that a chain may span there, where one is too small.
    """

    name: str
    arch: str
    cpu_features: tuple[str, ...] = ()
    caches: tuple[tuple[str, int], ...] = ()
    num_cores: int = 0
    is_host: bool = False
    gpus: tuple[Gpu, ...] = ()
    libraries: tuple[tuple[str, str], ...] = ()
    flops_per_s: int = 0
    bytes_per_s: int = 0
    places: tuple[PlaceLimit, ...] = ()

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


BF16_FEATURE = "avx512_bf16"
"""Linux's flag of processors that multiply bfloat16."""


def has_bf16(target: Target) -> bool:
    """Returns whether the target's processor multiplies bfloat16."""
    return BF16_FEATURE in target.cpu_features


WINDOW_BUFFER = "buffer"
"""Stands among the caches of a target: bytes in which a fused convolution keeps its sliding window."""


def with_window_buffer(target: Target, num_bytes: int) -> Target:
    """Returns the target with the capacity of its sliding-window buffer set."""
    return replace(target, caches=tuple(sorted({**dict(target.caches), WINDOW_BUFFER: num_bytes}.items())))


def unmet(requires: Mapping[str, Any], host: Target) -> str:
    """Returns why `host` does not meet an artifact's `requires`, or "" when it does.

    `compute_capability` lists those ("8.9") of which a GPU must have one exactly, `compute_capability_min` allows later
    ones too. Of several GPUs one that fits is enough. `machines` lists kinds of machine, one of which must be met.
    """
    if machines := requires.get("machines"):
        reasons = [(one.get("arch"), unmet(one, host)) for one in machines]
        if all(reason for _, reason in reasons):
            archs = dict.fromkeys(arch for arch, _ in reasons)
            here = dict(reversed(reasons)).get(host.arch)
            return here or f"needs {' or '.join(map(str, archs))}, this machine is {host.arch}"
    if (arch := requires.get("arch")) not in (None, host.arch):
        return f"needs {arch}, this machine is {host.arch}"
    if missing := sorted(set(requires.get("cpu_features", ())) - set(host.cpu_features)):
        return f"needs CPU features this machine lacks: {', '.join(missing)}"
    return _unmet_by_gpus(requires, host)


def capability_number(text: object) -> tuple[int, int]:
    """Returns a compute capability as (major, minor), which compares as the hardware does: 8.9 < 12.0.

    Raises:
        DataError: `text` is not of the form "8.9".
    """
    if not isinstance(text, str) or not _CAPABILITY.fullmatch(text):
        raise DataError(f"not a compute capability: {text!r:.40}", hint='for example "8.9"')
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def _unmet_by_gpus(requires: Mapping[str, Any], host: Target) -> str:
    one_of, at_least = requires.get("compute_capability", ()), requires.get("compute_capability_min")
    if not one_of and at_least is None:
        return ""
    try:
        wanted = [capability_number(text) for text in one_of]
        fits = [gpu for gpu in host.gpus if _gpu_fits(gpu, wanted, at_least)]
    except DataError as err:
        return err.what
    if fits:
        return ""
    asked = " or ".join(map(str, one_of)) if one_of else f"{at_least} or later"
    return f"needs an NVIDIA GPU of compute capability {asked}, {_gpus_of(host)}"


def _gpu_fits(gpu: Gpu, one_of: Collection[tuple[int, int]], at_least: object) -> bool:
    have = capability_number(gpu.compute_capability)
    return (not one_of or have in one_of) and (at_least is None or have >= capability_number(at_least))


def _gpus_of(host: Target) -> str:
    """Says what GPUs a machine has, or why it can use none."""
    if host.gpus:
        return "this machine has " + ", ".join(f"{gpu.compute_capability} ({gpu.name})" for gpu in host.gpus)
    why = cuda_unavailable() if host.is_host else ""
    return f"this machine has none: {why}" if why else "this machine has none"


def num_cores() -> int:
    """Returns how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def host_target() -> Target:
    """Returns this machine as a target; what cannot be read is left empty."""
    return Target(
        name="host",
        arch=platform.machine(),
        cpu_features=_host_features(),
        caches=_host_caches(),
        num_cores=num_cores(),
        is_host=True,
        gpus=tuple(_gpu_from_table(dict(facts), "this machine") for facts in gpu_facts()),
    )


def target_from_toml(path: Path) -> Target:
    """Returns the target that a TOML file describes; `arch` is enough, and then means `USUAL_FEATURES`.

    Raises:
        MissingInputError: there is no such file.
        DataError: the file is not TOML, lacks `arch`, or has an unknown or mistyped key.
    """
    where = str(path)
    data = _checked_table(toml_from_file(path, "target file"), _TARGET_KEYS, ("arch",), where)
    arch = ARCHS.get(data["arch"].lower(), data["arch"])
    says = {"cpu_features", "level"} & data.keys()
    features = set(data.get("cpu_features", () if says else USUAL_FEATURES.get(arch, ())))
    features |= set(_features_of_level(data.get("level"), where))
    if not all(isinstance(f, str) for f in features):
        raise DataError("cpu_features must be a list of strings", where=where)
    caches = data.get("caches", {})
    if not all(isinstance(v, int) and v > 0 for v in caches.values()):
        raise DataError("caches must map a level to bytes", where=where)
    libraries = data.get("libraries", {})
    if not all(isinstance(version, str) for version in libraries.values()):
        raise DataError("libraries must map a backend to a version as text", where=where)
    gpus = data.get("gpus", [])
    if len(gpus) > MAX_GPUS or not all(isinstance(gpu, dict) for gpu in gpus):
        raise DataError(f"gpus must be at most {MAX_GPUS} tables", where=where, hint="one [[gpus]] for each GPU")
    return Target(
        name=data.get("name", path.stem),
        arch=arch,
        cpu_features=tuple(sorted(features)),
        caches=tuple(sorted(caches.items())),
        num_cores=data.get("num_cores", 0),
        gpus=tuple(_gpu_from_table(gpu, f"{where}: gpus[{n}]") for n, gpu in enumerate(gpus)),
        libraries=tuple(sorted(libraries.items())),
        flops_per_s=_rate(data, "flops_per_s", where),
        bytes_per_s=_rate(data, "bytes_per_s", where),
        places=places_from_tables(data["places"], where) if "places" in data else (),
    )


def _rate(data: Mapping[str, Any], key: str, where: str) -> int:
    rate = data.get(key, 0)
    if key in data and not 0 < rate <= MAX_RATE:
        raise DataError(f"{key} must be from 1 to {MAX_RATE}", where=where)
    return int(rate)


def target_to_toml(target: Target) -> str:
    """Returns the TOML text of a target; `target_from_toml` of it gives an equal target, but for `is_host`."""
    lines = [f"name = {_toml_text(target.name)}", f"arch = {_toml_text(target.arch)}"]
    if target.num_cores:
        lines.append(f"num_cores = {target.num_cores}")
    lines += [f"{key} = {rate}" for key in _RATES if (rate := getattr(target, key))]
    lines += ["cpu_features = [", *(f"    {_toml_text(feature)}," for feature in target.cpu_features), "]"]
    if target.caches:
        lines += ["", "[caches]", *(f"{level} = {size}" for level, size in target.caches)]
    if target.libraries:
        lines += ["", "[libraries]", *(f"{_toml_text(name)} = {_toml_text(text)}" for name, text in target.libraries)]
    for gpu in target.gpus:
        lines += ["", "[[gpus]]", *_toml_lines_of_gpu(gpu)]
    for place in target.places:
        lines += ["", "[[places]]", f"name = {_toml_text(place.name)}"]
        lines += [f'memory = "{place.limit_bytes}"'] if place.limit_bytes is not None else []
    return "\n".join(lines) + "\n"


_TARGET_KEYS: dict[str, type] = {
    "name": str, "arch": str, "level": str, "cpu_features": list, "caches": dict, "num_cores": int, "gpus": list,
    "libraries": dict, "flops_per_s": int, "bytes_per_s": int, "places": list,
}  # fmt: skip
_RATES = ("flops_per_s", "bytes_per_s")
_GPU_KEYS: dict[str, type] = {"name": str, "compute_capability": str, "memory_bytes": int, "cudnn": dict}


def _checked_table(
    data: dict[str, Any], known: Mapping[str, type], needed: tuple[str, ...], where: str
) -> dict[str, Any]:
    for key, value in data.items():
        if key not in known:
            raise DataError(f"unknown key {key!r}", where=where, hint=did_you_mean(key, known))
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise DataError(f"{key} must be a {known[key].__name__}, not {value!r:.80}", where=where)
    for key in needed:
        if key not in data:
            raise DataError(f"the key {key!r} is missing", where=where, hint=_EXAMPLES.get(key, ""))
    return data


_EXAMPLES = {"arch": 'for example arch = "x86_64"', "compute_capability": 'for example compute_capability = "8.9"'}


def _gpu_from_table(data: dict[str, Any], where: str) -> Gpu:
    _checked_table(data, _GPU_KEYS, ("name", "compute_capability"), where)
    try:
        capability_number(data["compute_capability"])
    except DataError as err:
        raise err.within(where) from err
    if data.get("memory_bytes", 0) < 0:
        raise DataError("memory_bytes is negative", where=where)
    descriptor = {key: _descriptor_value(key, value, where) for key, value in data.get("cudnn", {}).items()}
    return Gpu(data["name"], data["compute_capability"], data.get("memory_bytes", 0), tuple(sorted(descriptor.items())))


def _descriptor_value(key: str, value: object, where: str) -> int | str | tuple[int, ...]:
    """Returns one value of a cuDNN descriptor; lists become tuples, so that a target can be hashed."""
    if not _BARE_KEY.fullmatch(key):
        raise DataError(f"cudnn has a malformed key {key!r:.80}", where=where)
    if isinstance(value, list) and all(_is_int(item) for item in value):
        return tuple(value)
    if isinstance(value, str) or _is_int(value):
        return value  # type: ignore[return-value]  # _is_int has just narrowed it
    raise DataError(f"cudnn.{key} must be an int, a text or a list of ints, not {value!r:.80}", where=where)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _toml_lines_of_gpu(gpu: Gpu) -> list[str]:
    lines = [f"name = {_toml_text(gpu.name)}", f"compute_capability = {_toml_text(gpu.compute_capability)}"]
    if gpu.memory_bytes:
        lines.append(f"memory_bytes = {gpu.memory_bytes}")
    if gpu.cudnn:
        lines += ["", "[gpus.cudnn]", *(f"{key} = {_toml_value(value)}" for key, value in gpu.cudnn)]
    return lines


def _toml_value(value: int | str | tuple[int, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return _toml_text(value) if isinstance(value, str) else str(value)


def _toml_text(text: str) -> str:
    """Returns a TOML basic string; JSON's escapes are all TOML's too, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _features_of_level(level: str | None, where: str) -> tuple[str, ...]:
    if level is None:
        return ()
    if level not in X86_64_LEVELS:
        raise DataError(f"unknown level {level!r}", where=where, hint=did_you_mean(level, X86_64_LEVELS))
    names = list(X86_64_LEVELS)
    return tuple(f for name in names[: names.index(level) + 1] for f in X86_64_LEVELS[name])


def _host_features() -> tuple[str, ...]:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            for line in lines:  # of the first processor: the text of all of them takes long to make
                key, _, value = line.partition(":")
                if key.strip() in ("flags", "Features"):
                    return tuple(sorted(value.split()))
    except OSError as err:
        if lacks_files(err):
            raise
    return ()


def _host_caches() -> tuple[tuple[str, int], ...]:
    sizes: dict[str, int] = {}
    for number in count():  # until there is no such cache
        folder = f"/sys/devices/system/cpu/cpu0/cache/index{number}"
        try:
            kind, level, size = (Path(folder, fact).read_text().strip() for fact in ("type", "level", "size"))
        except OSError:
            break
        if kind != "Instruction" and size.endswith("K"):
            sizes[f"l{level}"] = int(size[:-1]) * 1024
    return tuple(sorted(sizes.items()))
