# SPDX-License-Identifier: Apache-2.0
"""`nndeploy doctor`: what this box has, lacks and trusts, and how to mend it."""

from dataclasses import asdict

import click

from nndeploy.cli.commands.install import STORE
from nndeploy.cli.console import print_json, print_table
from nndeploy.errors import CheckError
from nndeploy.installed.bundle_store import store_at
from nndeploy.values.amounts import counted

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
        rows = [(one.what, "-" if one.absent_hardware else one.state, one.about, one.mend) for one in found]
        print_table("this machine", ("what", "", "about", "what to do"), rows)
    wrong = [one.what for one in found if one.state == WRONG]
    if wrong:
        raise CheckError(f"{counted(len(wrong), 'problem')} found: {', '.join(wrong)}")
