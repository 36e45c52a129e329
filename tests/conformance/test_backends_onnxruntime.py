# SPDX-License-Identifier: Apache-2.0
"""The backend `onnxruntime` keeps the promises of the interface."""

from nndeploy.testing import BackendConformance
from nndeploy_onnxruntime.plugin import Plugin


class TestOnnxRuntime(BackendConformance):
    backend = Plugin()
