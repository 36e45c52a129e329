# SPDX-License-Identifier: Apache-2.0
"""`nndeploy farm`: the machines that share a batch: a scheduler, workers, and the certificates between them."""

import sys
from pathlib import Path

import click

from nndeploy.cli.console import print_line
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.options.texts import bytes_in

EXAMPLES = """\b
Examples:
  nndeploy farm ca certs
  nndeploy farm scheduler tls://0.0.0.0:8786 --certificates certs
  nndeploy farm worker tls://farm.example:8786 --certificates certs
  nndeploy batch fleet.toml --cluster tls://farm.example:8786 --certificates certs
"""
EXAMPLES_OF = {
    "ca": """\b
Examples:
  nndeploy farm ca certs
  nndeploy farm ca certs --days 90
""",
    "scheduler": """\b
Examples:
  nndeploy farm scheduler tls://0.0.0.0:8786 --certificates certs
  nndeploy farm scheduler tls://10.0.0.5:0 --certificates certs --file scheduler.json
  nndeploy farm scheduler tcp://127.0.0.1:8786
""",
    "worker": """\b
Examples:
  nndeploy farm worker tls://farm.example:8786 --certificates certs
  nndeploy farm worker file:scheduler.json --certificates certs -j 2
  nndeploy farm worker tcp://127.0.0.1:8786 --folder /srv/worker --has site=lab
""",
}
DEFAULT_SIZE = "20GiB"
CERTIFICATES = click.option(
    "--certificates", type=click.Path(path_type=Path), metavar="FOLDER",
    help="Folder with ca.pem and the certificate and key of this role, as created by `farm ca`.",
)  # fmt: skip
INSECURE = click.option(
    "--insecure",
    is_flag=True,
    help="Allow unencrypted tcp:// on a network. Anyone who can reach it can run code on every worker.",
)


@click.group("farm", epilog=EXAMPLES)
def farm() -> None:
    """Run a build farm: scheduler, workers, certificates."""


@farm.command("ca", epilog=EXAMPLES_OF["ca"])
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--days", type=click.IntRange(1, 36_500), default=365, help="Validity of the certificates, in days.")
def authority(folder: Path, days: int) -> None:
    """Create a certificate authority in FOLDER, with certificates for the scheduler, workers and clients."""
    from nndeploy.farm.cluster.certificates import make_certificates

    made = make_certificates(folder, days)
    effect_is_made()
    for path in made:
        print_line(str(path))


@farm.command("scheduler", epilog=EXAMPLES_OF["scheduler"])
@click.argument("address")
@CERTIFICATES
@INSECURE
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help="Write the scheduler's address to a file, for workers that share the folder.",
)
def scheduler(address: str, certificates: Path | None, insecure: bool, file: Path | None) -> None:
    """Run a scheduler that listens at ADDRESS for workers and batches, until it receives a signal."""
    from nndeploy.farm.cluster.certificates import SCHEDULER, certificates_in
    from nndeploy.farm.cluster.half import check_cluster_half
    from nndeploy.farm.cluster.place import checked_address

    shown = None if certificates is None else certificates_in(certificates, SCHEDULER)
    checked_address(address, shown, insecure=insecure)
    check_cluster_half()
    from nndeploy.farm.cluster.scheduler import run_scheduler

    run_scheduler(address, shown, file, lambda where: _say(f"listening at {where}"))


@farm.command("worker", epilog=EXAMPLES_OF["worker"])
@click.argument("address")
@CERTIFICATES
@INSECURE
@click.option(
    "-j", "--jobs", type=click.IntRange(1), help="Number of parallel builds. Default: limited by cores and memory."
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Working directory. Default: nndeploy-worker in the user's cache directory.",
)
@click.option(
    "--size", default=DEFAULT_SIZE, metavar="SIZE", help="Maximum size of the worker's files, and of its cache."
)
@click.option(
    "--name",
    help="Name of the worker in reports. Default: the host name and a number.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port on which the scheduler reaches the worker. Default: any free port.",
)
@click.option(
    "--has",
    multiple=True,
    metavar="NEED=VALUE",
    help="Capability of this worker, matched with `needs` in fleet files (repeatable).",
)
def worker(
    address: str,
    certificates: Path | None,
    insecure: bool,
    jobs: int | None,
    folder: Path | None,
    size: str,
    name: str | None,
    port: int | None,
    has: tuple[str, ...],
) -> None:
    """Run a worker for the scheduler at ADDRESS, until it receives a signal or the scheduler is gone."""
    from nndeploy.compiler.compile_half import check_compile_half
    from nndeploy.farm.cluster.certificates import WORKER, certificates_in
    from nndeploy.farm.cluster.half import check_cluster_half
    from nndeploy.farm.cluster.place import address_of, checked_address
    from nndeploy.farm.cluster.worker_builds import WorkerBuilds
    from nndeploy.farm.machine import this_machine
    from nndeploy.files.account_folders import cache_folder

    check_compile_half()
    shown = None if certificates is None else certificates_in(certificates, WORKER)
    address = checked_address(address_of(address), shown, insecure=insecure)
    folder = (folder or cache_folder() / "nndeploy-worker").absolute()
    check_cluster_half()
    builds = WorkerBuilds(folder, this_machine(jobs, has), bytes_in("--size")(size))
    from nndeploy.farm.cluster.worker import run_worker

    run_worker(address, shown, builds, folder, name or "", port or 0, lambda own: _say(f"{own} builds for {address}"))


def _say(text: str) -> None:
    """Prints a line at once: whoever started it waits for it."""
    print_line(text)
    sys.stdout.flush()
