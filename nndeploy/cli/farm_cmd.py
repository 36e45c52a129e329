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
    help="The folder of ca.pem and the certificate and key of this role, as `farm ca` makes them.",
)  # fmt: skip
INSECURE = click.option(
    "--insecure", is_flag=True, help="Allow tcp:// on a network: whoever reaches it runs code on every worker."
)


@click.group("farm", epilog=EXAMPLES)
def farm() -> None:
    """Share a batch: a scheduler, workers, certificates."""


@farm.command("ca", epilog=EXAMPLES_OF["ca"])
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--days", type=click.IntRange(1, 36_500), default=365, help="How long the certificates are valid.")
def authority(folder: Path, days: int) -> None:
    """Make an authority in FOLDER, and certificates of a scheduler, of workers and of who sends jobs."""
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
    "--file", type=click.Path(path_type=Path), help="Write where it is to a file, for workers that share the folder."
)
def scheduler(address: str, certificates: Path | None, insecure: bool, file: Path | None) -> None:
    """Listen at ADDRESS for workers and batches, until a signal comes."""
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
@click.option("-j", "--jobs", type=click.IntRange(1), help="How many builds run at once. Default: by cores and memory.")
@click.option(
    "--folder", type=click.Path(path_type=Path), help="What it keeps. Default: nndeploy-worker in the cache folder."
)
@click.option("--size", default=DEFAULT_SIZE, metavar="SIZE", help="What its files and its cache may each hold.")
@click.option(
    "--name",
    help="What it is called in reports. Default: the machine's name and a number.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Where the scheduler reaches it. Default: any.",
)
@click.option("--has", multiple=True, metavar="NEED=VALUE", help="What else it has, for `needs` of a fleet file.")
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
    """Build for the scheduler at ADDRESS, until a signal comes or it is gone."""
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
