# SPDX-License-Identifier: Apache-2.0
"""Rewrites of operators that TensorRT refuses into ones that it takes, in order."""

from collections.abc import Sequence

from nndeploy.plugin.interface import Transform
from nndeploy.target.target import Target

TURING = "7.5"


def transforms(target: Target) -> Sequence[Transform]:
    """Returns the rewrites for the GPUs of `target`; each touches only what TensorRT refused."""
    from nndeploy.backend_kit.transforms.expand_function import ExpandFunction
    from nndeploy_tensorrt.transforms.lower_quantised import LowerQuantised
    from nndeploy_tensorrt.transforms.matmul_as_convolution import MatmulAsConvolution

    if not target.gpus:
        return ()
    for_turing = (MatmulAsConvolution(),) if any(gpu.compute_capability == TURING for gpu in target.gpus) else ()
    return (LowerQuantised(), ExpandFunction(), *for_turing)
