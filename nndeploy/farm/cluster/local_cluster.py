# SPDX-License-Identifier: Apache-2.0
"""A cluster on this machine alone, to try what a real one does: a scheduler and a worker, in processes of their own.

They speak TLS on the loopback device with certificates that are made for this call. Law: both end with this process,
whatever ends it.
"""

import contextlib
import subprocess
import sys

from nndeploy.errors import BusyError, UnavailableError
from nndeploy.farm.cluster.certificates import CLIENT, certificates_in, make_certificates
from nndeploy.farm.cluster.place import Place
from nndeploy.files.held_folder import HeldFolder
from nndeploy.sandbox.child_process import kill_group

_ENDS_WITH_PARENT = (
    "import sys; from nndeploy.sandbox.child_process import die_with_parent; die_with_parent(); "
    "from nndeploy.cli.main import main; main()"
)
END_SECONDS = 1.0
"""A process whose connections are closed is not always gone yet."""


class LocalCluster:
    """A scheduler and a worker that builds `num_jobs` at once; `place` is where they are."""

    def __init__(self, num_jobs: int) -> None:
        """Starts both.

        Raises:
            BusyError: the scheduler was killed.
            UnavailableError: it cannot be started.
        """
        self._held = contextlib.ExitStack()
        folder = self._held.enter_context(HeldFolder("farm"))
        shown = ("--certificates", str(folder / "certificates"))
        make_certificates(folder / "certificates")
        try:
            self._scheduler = self._started("scheduler", "tls://127.0.0.1:0", *shown)
            assert self._scheduler.stdout is not None
            address = self._scheduler.stdout.readline().decode().rpartition(" ")[2].strip()
            if not address:
                self.raise_if_killed(None)
                raise UnavailableError("the scheduler of this machine cannot be started")
            self._started("worker", address, *shown, "--jobs", str(num_jobs))
        except BaseException:
            self.close()
            raise
        self.place = Place(address, certificates_in(folder / "certificates", CLIENT))

    def raise_if_killed(self, seconds: float | None = END_SECONDS) -> None:
        """Waits for the end of the scheduler, for so long at most.

        Raises:
            BusyError: it was killed.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            if self._scheduler.wait(seconds) < 0:
                raise BusyError("the scheduler of this machine was killed while it started", hint="run it again")

    def close(self) -> None:
        """Ends both, with all that they started."""
        self._held.close()

    def _started(self, role: str, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", "-c", _ENDS_WITH_PARENT, "farm", role, *arguments]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert process.stdout is not None
        self._held.enter_context(process.stdout)
        self._held.callback(kill_group, process)
        return process
