# SPDX-License-Identifier: Apache-2.0
"""The backend `openvino` keeps the promises of the interface."""

from nndeploy_openvino.plugin import Plugin

from nndeploy.testing import BackendConformance


class TestOpenVino(BackendConformance):
    backend = Plugin()
