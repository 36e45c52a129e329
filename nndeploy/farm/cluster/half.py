# SPDX-License-Identifier: Apache-2.0
"""What a cluster needs beside the rest: dask.distributed, which nothing loads before a cluster is asked for."""

from importlib.util import find_spec

from nndeploy.errors import UnavailableError
from nndeploy.version import install_command


def check_cluster_half() -> None:
    """Raises UnavailableError, which names what is missing and what brings it, where there can be no cluster."""
    if find_spec("distributed") is None:
        raise UnavailableError("a cluster needs dask.distributed, not installed here", hint=install_command("farm"))
