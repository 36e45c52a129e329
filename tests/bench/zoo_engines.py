# SPDX-License-Identifier: Apache-2.0
"""The bundle and the two libraries on some threads, each made inside a child of `interleaved`.

All three are told the model alone: no sizes, no inputs. The libraries trade no more numbers for speed than in our
bundles (docs/reference/backends.md). Values that are no arrays (lists of maps, as ZipMap returns) are timed, and left
out of what crosses to the parent.
"""

from collections.abc import Mapping
from typing import Any

import native_engines
import numpy as np
from interleaved import Array, EngineRefusedError, Ready

Inputs = Mapping[str, Array]


def bundle(inputs: Inputs, path: str, threads: int) -> Ready:
    """A compiled bundle through the runtime."""
    import nndeploy

    program = nndeploy.load_bundle(path, nndeploy.LoadOptions(threads=threads, device="cpu", cache_dir=""))
    return Ready(lambda: program.run(inputs), lambda found: _arrays(found.values()))


def onnxruntime(inputs: Inputs, model: str, threads: int) -> Ready:
    """ONNX Runtime's CPU provider, all its optimisations; as it comes where it cannot keep 8-bit products exact."""
    try:
        return _of_arrays(native_engines.onnxruntime(inputs, model, threads=threads, knows_sizes=False, exact=True))
    except Exception:  # ONNX Runtime's own kinds; it would have to replace a tensor that several nodes share
        return _of_arrays(native_engines.onnxruntime(inputs, model, threads=threads, knows_sizes=False))


def openvino(inputs: Inputs, model: str, threads: int) -> Ready:
    """OpenVINO on the CPU."""
    try:
        return _of_arrays(native_engines.openvino(inputs, model, threads=threads, knows_sizes=False))
    except (RuntimeError, TypeError, ValueError) as err:
        raise EngineRefusedError(" ".join(str(err).split())[-200:]) from err


def _of_arrays(ready: Ready) -> Ready:
    return Ready(ready.call, lambda found: _arrays(ready.arrays_of(found)), ready.note)


def _arrays(values: Any) -> list[Array]:
    arrays = [np.asarray(one) for one in values if isinstance(one, np.ndarray | np.generic)]
    return [one.astype(np.str_) if one.dtype == object else one for one in arrays]
