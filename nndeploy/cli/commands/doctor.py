# SPDX-License-Identifier: Apache-2.0
"""`nndeploy doctor`: what this machine has, lacks and trusts, and how to mend it."""

import platform
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from nndeploy.cli.commands.install import STORE
from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.errors import CheckError
from nndeploy.installed.bundle_store import store_at
from nndeploy.values.amounts import counted

if TYPE_CHECKING:
    from nndeploy.installed.doctor import Finding

WHEELS = (
    "FOLDER: wheels, nndeploy's own and those it needs. On a machine with a network, nndeploy wheelhouse --for {arch} "
    "--with NAME --find-links dist -o FOLDER fills it, where NAME stands in the brackets and dist has nndeploy's own."
)
EXAMPLES = """\b
Examples:
  nndeploy doctor
  nndeploy doctor --store /var/lib/nndeploy --json
"""


@click.command("doctor", epilog=EXAMPLES)
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON on standard output.")
def doctor(store: str | None, as_json: bool) -> None:
    """Diagnose this machine, and show how to fix what is wrong.

    Reports backends, devices, trusted keys and installed bundles. Every installed bundle is read in full; nothing is
    run. Missing optional parts are not an error; anything wrong exits with 1.
    """
    from nndeploy.installed.doctor import WRONG, findings

    found = list(findings(store_at(store)))
    if as_json:
        print_json({"findings": [asdict(one) for one in found]})
    else:
        print_table("this machine", ("what", "", "about", "what to do"), _rows(found))
        if any("FOLDER" in one.mend for one in found):
            print_line(WHEELS.format(arch=platform.machine()))
    wrong = [one.what for one in found if one.state == WRONG]
    if wrong:
        raise CheckError(f"{counted(len(wrong), 'problem')} found: {', '.join(wrong)}")


def _rows(found: "Sequence[Finding]") -> list[tuple[str, str, str, str]]:
    """Returns the rows of the table; what serves hardware that is not here is one row of that hardware."""
    here = [one for one in found if not one.absent_hardware]
    absent = dict.fromkeys(one.absent_hardware for one in found if one.absent_hardware)
    return [
        *((one.what, one.state, one.about, one.mend) for one in here),
        *((name, "-", "none here, and nothing is needed for it", "") for name in absent),
    ]
