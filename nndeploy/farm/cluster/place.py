# SPDX-License-Identifier: Apache-2.0
"""Where a cluster is, and what is shown to it: texts of the command line -> an address and certificates.

Law: whoever reaches a scheduler runs code on every worker, so there are certificates on both sides, unless it is on
this machine alone or the user said that anybody may.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from nndeploy.errors import DataError, PolicyError, UsageError
from nndeploy.farm.cluster.certificates import CLIENT, Certificates, certificates_in
from nndeploy.farm.cluster.scheduler_address import DEFAULT_PORT, TCP, TLS, parted
from nndeploy.farm.fleet import Cluster
from nndeploy.files.whole_files import read_regular
from nndeploy.registry.web_address import is_loopback_host

LOCAL, OF_FLEET, FILE = "local", "fleet", "file:"
_MAX_FILE_BYTES = 1 << 20
_EXAMPLES = (
    f"tls://farm.example:{DEFAULT_PORT}, tcp://127.0.0.1:{DEFAULT_PORT}, {FILE}scheduler.json, {LOCAL}, {OF_FLEET}"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A scheduler: where it is, "" for one that is started here, and the certificates that it is spoken to with."""

    address: str
    certificates: Certificates | None = None


def place_of(text: str, certificates: str | None, of_fleet: Cluster | None, *, insecure: bool) -> Place:
    """Returns the place that `--cluster` means; `certificates` is a folder.

    Raises:
        UsageError: it is none, or lacks certificates.
        MissingInputError: a file that is named is not there.
        PolicyError: others could read what is sent, or the private key.
    """
    if text == LOCAL:
        return Place("")
    shown = None if certificates is None else certificates_in(Path(certificates), CLIENT)
    if text == OF_FLEET:
        if of_fleet is None:
            raise UsageError("the fleet file has no table [cluster]", hint=f"--cluster takes {_EXAMPLES}")
        text = of_fleet.address
        if shown is None and of_fleet.cert:
            shown = Certificates(Path(of_fleet.ca), Path(of_fleet.cert), Path(of_fleet.key)).checked()
    return Place(checked_address(address_of(text), shown, insecure=insecure), shown)


def address_of(text: str) -> str:
    """Returns the address that a text is, or that the file behind `file:` says.

    Raises:
        MissingInputError: there is no such file.
        DataError: no scheduler wrote it.
    """
    if not text.startswith(FILE):
        return text
    path = Path(text.removeprefix(FILE))
    try:
        return str(json.loads(read_regular(path, _MAX_FILE_BYTES))["address"])
    except (ValueError, KeyError, TypeError) as err:
        raise DataError("was not written by a scheduler", where=str(path)) from err


def checked_address(text: str, certificates: Certificates | None, *, insecure: bool) -> str:
    """Returns an address that may be spoken to, or listened at, with these certificates.

    Raises:
        UsageError: it is none, or lacks certificates.
        PolicyError: it is on a network, without certificates, and nobody said that this is meant.
    """
    scheme, host, _ = parted(text, _EXAMPLES)
    if scheme == TLS and certificates is None:
        raise UsageError(
            f"{text} needs certificates", hint="--certificates FOLDER; create them with `nndeploy farm ca FOLDER`"
        )
    if scheme == TCP and not insecure and not is_loopback_host(host):
        hint = "use tls://, or --insecure on a private network"
        raise PolicyError(f"anyone who can reach {text} could run code on every worker", hint=hint)
    return text
