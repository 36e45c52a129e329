# SPDX-License-Identifier: Apache-2.0
"""Rewrites of operators that TensorRT refuses into ones that it takes, in order."""

from collections.abc import Sequence

from nndeploy.plugin.interface import Transform


def transforms() -> Sequence[Transform]:
    """Returns the rewrites; each touches only what TensorRT refused."""
    from nndeploy.transforms.expand_function import ExpandFunction
    from nndeploy_tensorrt.transforms.lower_quantised import LowerQuantised

    return (LowerQuantised(), ExpandFunction())
