# SPDX-License-Identifier: Apache-2.0
"""Stage 8: the bundles of the stage `networks`, timed in turns with ONNX Runtime on the CPU and on CUDA, and torch.

A call has its inputs and outputs on the host, copies included, for all contestants. torch runs a whole network only
where onnx2torch is installed; its inputs and outputs are copied too.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

from gpucheck.agreement import agreement
from gpucheck.child import reason_of
from gpucheck.networks import Network, bundle_path, combinations, network, network_names
from gpucheck.options import Options
from gpucheck.reference import cuda_session, outputs_of, session_of
from gpucheck.rows import DIFFERS, NOT_RUN, OK, Row, with_ratios
from gpucheck.tiers import DEVICE
from gpucheck.timing import Contestant, medians_ms
from gpucheck.torch_peers import TorchMissingError, load_cudnn_first, torch_module
from nndeploy.cuda import CudaError
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import load_bundle

STAGE = "speed"
SECONDS = 2.0
ON_CPU = "onnxruntime CPU"
ON_CUDA = "onnxruntime CUDA"


def items(options: Options) -> list[str]:
    """Returns the networks that have a bundle."""
    found = network_names(options)
    return [name for name in found if any(_paths(name, options).values())]


def run(item: str, options: Options) -> Iterator[Row]:
    """Yields a row for each contestant on one network."""
    wanted = network(item, options)
    reference = session_of(wanted.source)
    want = outputs_of(reference, wanted.sample)
    contestants = {ON_CPU: Contestant(lambda: reference.run(None, wanted.sample))}
    with ExitStack() as opened:
        load_cudnn_first()
        tiers = [which for which, is_there in _paths(item, options).items() if is_there]
        for which in tiers:
            program = opened.enter_context(load_bundle(bundle_path(item, which, options), LoadOptions(device=DEVICE)))
            contestants[which] = Contestant(_call(program, wanted.sample))
        yield from _add_onnxruntime(wanted, contestants)
        yield from _add_torch(wanted, want, contestants)
        times = medians_ms(contestants, SECONDS)
    peers = {name: ms for name, ms in times.items() if name not in tiers}
    yield from with_ratios([Row(STAGE, item, name, OK, ms=ms) for name, ms in times.items()], peers)


def _paths(name: str, options: Options) -> dict[str, bool]:
    return {which: bundle_path(name, which, options).is_file() for which in combinations(options)}


def _call(program: Any, sample: Mapping[str, Any]) -> Callable[[], object]:
    return lambda: program.run(sample)


def _add_onnxruntime(wanted: Network, contestants: dict[str, Contestant]) -> Iterator[Row]:
    session, why = cuda_session(wanted.source)
    if session is None:
        yield Row(STAGE, wanted.name, ON_CUDA, NOT_RUN, why)
        return
    contestants[ON_CUDA] = Contestant(lambda: session.run(None, wanted.sample))


def _add_torch(wanted: Network, want: Mapping[str, Any], contestants: dict[str, Contestant]) -> Iterator[Row]:
    """Adds torch where it can read the network; what it raises is its own row."""
    try:
        call = _torch_call(wanted)
        found = agreement(dict(zip(want, call(), strict=True)), want, wanted.quantised)
    except (ImportError, TorchMissingError):
        yield Row(STAGE, wanted.name, "torch", NOT_RUN, "torch with onnx2torch is not here")
        return
    except CudaError:
        raise
    except Exception as err:  # a converter that does not know an operator, in many classes
        yield Row(STAGE, wanted.name, "torch", NOT_RUN, reason_of(err))
        return
    if not found.ok:
        yield Row(STAGE, wanted.name, "torch", DIFFERS, found.reason, max_abs=found.max_abs)
    contestants["torch"] = Contestant(call)


def _torch_call(wanted: Network) -> Callable[[], list[Any]]:
    """Returns a call that runs a network in torch on the GPU, from host to host."""
    import onnx2torch

    torch = torch_module()
    module = onnx2torch.convert(wanted.source).eval().cuda()

    def call() -> list[Any]:
        with torch.inference_mode():
            found = module(*(torch.from_numpy(value).cuda() for value in wanted.sample.values()))
        outputs = found if isinstance(found, tuple | list) else [found]
        return [output.cpu().numpy() for output in outputs]

    return call
