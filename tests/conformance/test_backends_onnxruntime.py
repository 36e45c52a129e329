# SPDX-License-Identifier: Apache-2.0
"""The backend `onnxruntime` keeps the promises of the interface."""

from nndeploy_onnxruntime.plugin import Plugin

from nndeploy.testing import BackendConformance


class TestOnnxRuntime(BackendConformance):
    backend = Plugin()
