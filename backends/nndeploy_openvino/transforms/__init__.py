# SPDX-License-Identifier: Apache-2.0
"""Rewrites that make operators OpenVINO refuses into ones that it takes, in order."""

from nndeploy.backend_kit.transforms.decompose_qlinear import DecomposeQLinear
from nndeploy.plugin.interface import Transform

TRANSFORMS: tuple[Transform, ...] = (DecomposeQLinear(),)
