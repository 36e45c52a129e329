# SPDX-License-Identifier: Apache-2.0
"""Where many compiles run one after the other, a process forks that of each: their imports take most of a small one."""

from nndeploy.compiler.job import plugin_paths
from nndeploy.sandbox.forked import ForkServer, fork_server

_WARM = "nndeploy.compiler.warm_imports"


def compile_server() -> ForkServer:
    """Returns a server of compiles; its process starts with the first of them."""
    return fork_server([_WARM], plugin_paths())
