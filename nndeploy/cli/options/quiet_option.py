# SPDX-License-Identifier: Apache-2.0
"""`-q`: the one option by which a command tells errors, warnings and results alone."""

import click

from nndeploy.cli.console import be_quiet


def _ask(_context: click.Context, _parameter: click.Parameter, is_quiet: bool) -> None:
    be_quiet(is_quiet=is_quiet)


QUIET = click.option(
    "-q", "--quiet", is_flag=True, is_eager=True, expose_value=False, callback=_ask,
    help="Write only errors and warnings to standard error: no progress, no figures.",
)  # fmt: skip
