# SPDX-License-Identifier: Apache-2.0
"""Our own CPU kernels keep what a backend promises."""

from nndeploy_native.plugin import Plugin

from nndeploy.testing import BackendConformance


class TestNative(BackendConformance):
    backend = Plugin()
