# SPDX-License-Identifier: Apache-2.0
"""What exporters spell out becomes one operator before it is lowered.

The core asks for transforms of operators that a backend refuses; these are of operators that it takes, and are made
when a submodel is built. Other backends' libraries do their own.

Law: the values of the submodel's outputs do not change but for rounding; their names and types stay.
"""

from collections.abc import Sequence

import onnx_ir as ir

from nndeploy.plugin.interface import Transform
from nndeploy_native.transforms.bytes_through_movement import BytesThroughMovement
from nndeploy_native.transforms.fuse_group_normalisation import FuseGroupNormalisation
from nndeploy_native.transforms.fuse_normalisation import FuseNormalisation
from nndeploy_native.transforms.unsigned_activations import UnsignedActivations

TRANSFORMS: Sequence[Transform] = (
    UnsignedActivations(),
    BytesThroughMovement(),
    FuseNormalisation(),
    FuseGroupNormalisation(),
)


def transformed(submodel: ir.Model) -> ir.Model:
    """Returns a submodel with what it spells out as one operator; what came in stays as it is."""
    model = submodel.clone()
    for transform in TRANSFORMS:
        transform(model, lambda _: True)
    return model
