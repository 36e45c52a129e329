# SPDX-License-Identifier: Apache-2.0
"""Stage 1: what is here. Driver, GPUs, versions, what each tier says of itself; writes the target as TOML."""

from collections.abc import Callable, Iterator
from pathlib import Path

from gpucheck.options import Options
from gpucheck.peaks import peaks_of
from gpucheck.rows import NOT_RUN, OK, REFUSED, Row
from gpucheck.tiers import library_versions
from nndeploy.cuda.current_driver import current_driver
from nndeploy.plugin.registry import backend
from nndeploy.target.target import Gpu, host_target, target_from_toml, target_to_toml

STAGE = "probe"
GIB = 2.0**30


def items(options: Options) -> list[str]:
    """Returns the names of what is looked at; a peer's import must not take the rest with it."""
    return ["driver", "gpus", "versions", *options.tiers, "torch", "onnxruntime", "target"]


def run(item: str, options: Options) -> Iterator[Row]:
    """Yields what is known of one thing."""
    if item in options.tiers:
        yield _tier(item)
    else:
        checks: dict[str, Callable[[Options], Iterator[Row]]] = {
            "driver": _driver, "gpus": _gpus, "versions": _versions, "torch": _torch, "onnxruntime": _onnxruntime,
            "target": _target,
        }  # fmt: skip
        yield from checks[item](options)


def _driver(options: Options) -> Iterator[Row]:
    driver = current_driver()
    yield Row(STAGE, "driver", facts={"CUDA": driver.driver_version(), "GPUs": driver.device_count()})


def _gpus(options: Options) -> Iterator[Row]:
    for number, gpu in enumerate(host_target().gpus):
        yield Row(STAGE, f"cuda:{number}", facts=facts_of_gpu(gpu))


def facts_of_gpu(gpu: Gpu) -> dict[str, object]:
    """Returns what the table says of a GPU, with the peaks that the floors of later stages are computed with."""
    descriptor, peaks = dict(gpu.cudnn), peaks_of(gpu.compute_capability, dict(gpu.cudnn))
    return {
        "name": gpu.name,
        "compute capability": gpu.compute_capability,
        "GiB": round(gpu.memory_bytes / GIB, 1),
        "multiprocessors": descriptor.get("multiProcessorCount", 0),
        "peak GB/s": round(peaks.bytes_per_s / 1e9),
        "peak float32 TFLOP/s": round(peaks.float32_per_s / 1e12, 1),
        "peak float16 TFLOP/s": round(peaks.float16_per_s / 1e12, 1),
        "L2 MiB": round(peaks.l2_bytes / 2**20),
    }


def _versions(options: Options) -> Iterator[Row]:
    versions = library_versions()
    yield Row(STAGE, "versions", facts={name: version for name, version in versions.items() if version})
    if missing := [name for name, version in versions.items() if not version]:
        yield Row(STAGE, "not installed", facts={"": ", ".join(missing)})


def _tier(tier: str) -> Row:
    probe = backend(tier).probe(host_target())
    if probe.can_build and probe.can_run:
        return Row(STAGE, "probe", tier, OK, facts={"version": probe.version})
    reason = " ".join(filter(None, (probe.reason, f"(hint: {probe.hint})" if probe.hint else "")))
    return Row(STAGE, "probe", tier, REFUSED, reason, facts={"version": probe.version})


def _torch(options: Options) -> Iterator[Row]:
    try:
        import torch
    except ImportError:
        yield Row(STAGE, "torch", "torch", NOT_RUN, "torch is not installed")
        return
    sees_gpu = torch.cuda.is_available()
    facts = {"version": torch.__version__, "CUDA": torch.version.cuda, "cuDNN": torch.backends.cudnn.version()}
    yield Row(STAGE, "torch", "torch", OK if sees_gpu else NOT_RUN, "" if sees_gpu else "it sees no GPU", facts=facts)


def _onnxruntime(options: Options) -> Iterator[Row]:
    import onnxruntime

    providers = ", ".join(onnxruntime.get_available_providers())
    yield Row(STAGE, "onnxruntime", "onnxruntime", facts={"version": onnxruntime.__version__, "providers": providers})


def _target(options: Options) -> Iterator[Row]:
    """Writes the target, and reads it again as `--target` would."""
    text = target_to_toml(host_target())
    path = Path(options.target_out or Path(options.workdir, "target.toml"))
    path.write_text(text, encoding="utf-8")
    same = target_to_toml(target_from_toml(path)) == text
    where = options.target_out or "not kept (--target-out)"
    yield Row(STAGE, "target as TOML", "cuda", OK if same else "FAILED", facts={"bytes": len(text), "file": where})
