# SPDX-License-Identifier: Apache-2.0
"""The suite that every backend passes, for this project's and for anybody's plugin.

    from nndeploy.testing import BackendConformance
    from my_package.plugin import Plugin

    class TestMyBackend(BackendConformance):
        backend = Plugin()

pytest then runs every promise of `nndeploy.plugin.interface` on the plugin: small models of many kinds are either
refused with a reason, or built, opened and run, and then give the right numbers. `GpuConformance` is the suite for a
backend whose sessions run on a GPU. Needs pytest and onnx.
"""

from nndeploy.testing.case import Case
from nndeploy.testing.conformance import BackendConformance
from nndeploy.testing.gpu_conformance import GpuConformance
from nndeploy.testing.models import CASES

__all__ = ["CASES", "BackendConformance", "Case", "GpuConformance"]
