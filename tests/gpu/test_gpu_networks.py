# SPDX-License-Identifier: Apache-2.0
"""Whole networks, compiled here for this GPU, loaded, compared with ONNX Runtime on the CPU, and timed in turns.

Each backend alone with the CPU behind it, then all together. What a compile drops because of wrong numbers is wrong
here: on a user's machine the next backend would hide it. A call has its inputs and outputs on the host, copies
included, for all contestants; the peers are ONNX Runtime on the CPU and on CUDA, and torch where onnx2torch is.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import gpu_networks
import pytest
from gpu_backends import (
    DEVICE,
    TIERS,
    Contestant,
    RefusedError,
    check_alike,
    medians_ms,
    ort_outputs,
    ort_session,
    why_unusable,
)
from gpu_torch import load_cudnn_first, torch_module

from nndeploy.bundle.report import ChainReport
from nndeploy.compiler.flow import compile_model
from nndeploy.compiler.options import CompileOptions
from nndeploy.errors import CheckError, ModelError
from nndeploy.jobs.workers import InProcessWorkers
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import load_bundle
from nndeploy.target.target import host_target

FALLBACK = ("onnxruntime", "reference")
SECONDS, NUM_RUNS = 2.0, 3


@pytest.mark.serial
@pytest.mark.parametrize("name", gpu_networks.names())
def test_a_network_is_right_on_every_backend_and_timed(
    name: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    network = gpu_networks.network(name)
    reference = ort_session(network.source)
    want = ort_outputs(reference, network.sample)
    usable = [tier for tier in TIERS if not why_unusable(tier)]
    contestants = {"onnxruntime CPU": Contestant(lambda: reference.run(None, network.sample))}
    wrong = list[str]()
    load_cudnn_first()
    with ExitStack() as stack:
        for tiers in [*([tier] for tier in usable), *([usable] if len(usable) > 1 else [])]:
            which, path = "+".join(tiers), tmp_path / f"{'-'.join(tiers)}.nnd"
            try:
                chain = _compiled(network, tiers, path)
            except CheckError as err:
                wrong.append(f"{which}: {err}")
                continue
            except ModelError as err:
                record_property(f"{which} refused", err)
                continue
            wrong += [f"{which}: {reason}" for reason in chain.dropped if "wrong numbers" in reason]
            record_property(which, _shares(chain))
            if not any(submodel.backend in TIERS for submodel in chain.submodels):
                continue
            program = stack.enter_context(load_bundle(str(path), LoadOptions(device=DEVICE)))
            try:
                for _ in range(NUM_RUNS):
                    check_alike(program.run(network.sample), want, quantised=network.quantised)
            except AssertionError as err:
                wrong.append(f"{which}: {err}")
            contestants[which] = Contestant(lambda program=program: program.run(network.sample))  # type: ignore[misc]
        for peer, made in (("onnxruntime CUDA", _on_cuda), ("torch", _on_torch)):
            try:
                contestants[peer] = made(network)
            except (ImportError, RefusedError, NotImplementedError) as err:
                record_property(peer, err)
        for contestant, ms in medians_ms(contestants, SECONDS).items():
            record_property(f"{contestant} ms", f"{ms:.4g}")
    assert not wrong


def _compiled(network: gpu_networks.Network, tiers: list[str], path: Path) -> ChainReport:
    target = replace(host_target(), is_host=False)  # tiles are not measured
    options = CompileOptions(
        backends=(*tiers, *FALLBACK), targets=(target,), samples=[network.sample], shapes=network.shapes,
        keep_fallback=False,
    )  # fmt: skip
    return compile_model(network.source, path, options, workers=InProcessWorkers()).target_chains[0]


def _shares(chain: ChainReport) -> str:
    counts = Counter(submodel.backend for submodel in chain.submodels)
    return " ".join(f"{backend} {chain.share_of(backend):.0%} in {count}" for backend, count in counts.items())


def _on_cuda(network: gpu_networks.Network) -> Contestant:
    session = ort_session(network.source, on_cuda=True)
    return Contestant(lambda: session.run(None, network.sample))


def _on_torch(network: gpu_networks.Network) -> Contestant:
    """Returns a call that runs a network in torch on the GPU, from host to host; its numbers are not compared."""
    import onnx2torch

    torch = torch_module()
    module = onnx2torch.convert(network.source).eval().cuda()

    def call() -> list[Any]:
        with torch.inference_mode():
            found = module(*(torch.from_numpy(value).cuda() for value in network.sample.values()))
        return [output.cpu().numpy() for output in (found if isinstance(found, tuple | list) else [found])]

    call()
    return Contestant(call)
