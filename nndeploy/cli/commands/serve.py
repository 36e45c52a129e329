# SPDX-License-Identifier: Apache-2.0
"""`nndeploy serve`: bundles behind the Open Inference Protocol, until a signal ends it."""

from pathlib import Path
from typing import Any

import click

from nndeploy.cli.console import warn
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import options_given, options_of, sections_of
from nndeploy.cli.options.value_types import SERVED
from nndeploy.errors import UsageError
from nndeploy.serve.options import ServeOptions

EXAMPLES = """\b
Examples:
  nndeploy serve model.nnd                      HTTP on 127.0.0.1:8000, gRPC on 127.0.0.1:8001
  nndeploy serve model.nnd --http unix:/run/model.sock --grpc none
  nndeploy serve faces@ --follow                the installed bundle, and its updates
  nndeploy serve --model faces=f.nnd pipeline.toml
  nndeploy serve a=one.nnd b=two.nnd --batch 8 --batch-delay-ms 2
  nndeploy serve model.nnd --http 0.0.0.0:8443 --tls-cert c.pem --tls-key k.pem --token-file token --grpc none
"""

SECTIONS = sections_of(ServeOptions)


@click.command("serve", cls=SectionedCommand, sections=SECTIONS, epilog=EXAMPLES)
@click.argument("bundles", type=SERVED, nargs=-1, required=True, metavar="[NAME=]BUNDLE|PIPELINE.toml...")
@options_of(ServeOptions)
def serve(bundles: tuple[tuple[str, Path], ...], **options: Any) -> None:
    """Serve bundles over the Open Inference Protocol.

    Version 2 of the protocol, as in KServe and Triton, over HTTP and gRPC. Pipelines, in a file or embedded in a
    bundle, are served in the same way. A model is named after its file, or NAME. It is ready once it is loaded and
    reproduces its goldens (stored inputs with reference outputs) on this machine. The first SIGINT or SIGTERM stops
    accepting requests and finishes those in progress; a second one exits at once.
    """
    from nndeploy.cli.commands.run_signals import StopSignals
    from nndeploy.cli.commands.serve_until_stop import serve_by_processes, serve_here
    from nndeploy.cli.commands.service_manager import ServiceManager
    from nndeploy.serve.open_served import check_served
    from nndeploy.serve.service import check_libraries

    how = options_given(ServeOptions, options)
    named = dict(bundles)
    if len(named) != len(bundles):
        twice = next(name for name, _ in bundles if [one for one, _ in bundles].count(name) > 1)
        raise UsageError(f"two bundles are called {twice!r}", hint="NAME=BUNDLE")
    check_libraries()
    for path in named.values():
        check_served(path, how)  # who waits for an address gets none where there is nothing to serve
    manager = ServiceManager()
    with StopSignals(manager.stopping) as signals:
        all_ended = (serve_here if how.processes == 1 else serve_by_processes)(named, how, signals.stop, manager)
        if not all_ended:
            warn(f"not every request ended within {how.grace:g} s")
    signals.raise_if_stopped()
