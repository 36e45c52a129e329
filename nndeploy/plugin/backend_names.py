# SPDX-License-Identifier: Apache-2.0
"""The names of the installed backends, by their entry points; no backend is loaded, nor the interface of one."""

from nndeploy.errors import UsageError
from nndeploy.plugin.entry_points import Plugins

GROUP = "nndeploy.backends"
PLUGINS = Plugins(GROUP, "backend", UsageError)
