# SPDX-License-Identifier: Apache-2.0
"""Steps -> fewer steps that do the same: the list of fusions, in order.

Law: the values of the submodel's outputs do not change but for rounding, and no step reads what is not yet written.
"""

from collections.abc import Set

from nndeploy.backend_kit.kernels.dead_steps import without_dead_steps
from nndeploy_native.fusion.attention import fuse_attention
from nndeploy_native.fusion.byte_lines import fuse_byte_lines
from nndeploy_native.fusion.byte_tables import fuse_byte_tables, join_byte_tables
from nndeploy_native.fusion.byte_times import fuse_byte_times
from nndeploy_native.fusion.channel_parts import fuse_channel_parts
from nndeploy_native.fusion.elementwise import fuse_elementwise
from nndeploy_native.fusion.inverted_residual import fuse_inverted_residual
from nndeploy_native.fusion.layout import fuse_layout
from nndeploy_native.fusion.quantised_floats import fuse_quantised_floats
from nndeploy_native.fusion.separable import fuse_separable
from nndeploy_native.fusion.stem import fuse_stem
from nndeploy_native.fusion.turned_product import fuse_turned_product
from nndeploy_native.steps.step import NativeStep


def fused(steps: list[NativeStep], kept: Set[str]) -> list[NativeStep]:
    """Returns the fused steps; `kept` names the roots that are read outside."""
    steps = without_dead_steps(steps, kept)
    steps = join_byte_tables(fuse_elementwise(steps, kept), kept)
    steps = fuse_quantised_floats(fuse_byte_tables(fuse_byte_lines(fuse_byte_times(steps))), kept)
    steps = fuse_turned_product(steps, kept)
    steps = fuse_attention(steps, kept)
    steps = fuse_channel_parts(steps, kept)
    steps = fuse_separable(steps, kept)
    steps = fuse_inverted_residual(steps, kept)
    steps = fuse_layout(steps, kept)
    return fuse_stem(steps, kept)
