# SPDX-License-Identifier: Apache-2.0
"""Rewrites that make operators OpenVINO refuses into ones that it takes, in order."""

from nndeploy.plugin.interface import Transform
from nndeploy.transforms.decompose_qlinear import DecomposeQLinear

TRANSFORMS: tuple[Transform, ...] = (DecomposeQLinear(),)
