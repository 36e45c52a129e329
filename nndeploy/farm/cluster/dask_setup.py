# SPDX-License-Identifier: Apache-2.0
"""dask.distributed as a farm uses it: no guesses ahead, no retries, no dashboard, nothing that measures itself.

Imported only where a cluster is asked for. Laws: a worker that is lost fails what it was building, at once, because the
coordinator counts tries and knows causes; both ends of a connection show a certificate wherever one is given.
"""

import logging
from typing import Any

import dask
import distributed

from nndeploy.build_cache.tools import tools
from nndeploy.farm.cluster.certificates import Certificates
from nndeploy.version import DISTRIBUTION, __version__

dask.config.set(
    {
        "distributed.scheduler.allowed-failures": 0,
        "distributed.scheduler.work-stealing": False,
        "distributed.scheduler.worker-saturation": 1.0,
        "distributed.scheduler.active-memory-manager.start": False,
        "distributed.scheduler.events-cleanup-delay": "1m",
        "distributed.worker.memory.target": False,  # of the worker, which is small; a build has limits of its own
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.memory.terminate": False,
        "distributed.worker.profile.enabled": False,
        "distributed.diagnostics.nvml": False,  # a GPU belongs to what is built on it
        "distributed.admin.system-monitor.gil.enabled": False,
        "distributed.admin.system-monitor.interval": "10s",
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.tick.limit": "60s",
        "distributed.comm.timeouts.connect": "20s",
    }
)
for name in ("distributed", *logging.root.manager.loggerDict):
    if name.partition(".")[0] == "distributed":  # what went wrong is an outcome or an error of ours
        logging.getLogger(name).setLevel(logging.CRITICAL)


def security_of(certificates: Certificates | None) -> Any:
    """Returns what dask takes for certificates; each role shows the same."""
    if certificates is None:
        return distributed.Security(require_encryption=False)
    shown = {
        f"tls_{role}_{kind}": str(path)
        for role in ("client", "scheduler", "worker")
        for kind, path in (("cert", certificates.cert), ("key", certificates.key))
    }
    return distributed.Security(tls_ca_file=str(certificates.ca), require_encryption=True, **shown)


def release() -> str:
    """Returns what two machines must have alike: nndeploy, to the byte, and the version of dask."""
    ours = tools().get(f"tool:{DISTRIBUTION}", __version__)
    return f"nndeploy {ours}, distributed {distributed.__version__}"


def why_another(theirs: object) -> str:
    """Returns why a machine of another release cannot be worked with, "" where it has the same."""
    return "" if theirs == release() else f"it has {theirs!s:.200}; here is {release()}"
