# SPDX-License-Identifier: Apache-2.0
"""`nndeploy install`, `installed`, `rollback`, `uninstall`: bundles on a device, by name."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from nndeploy.cli.console import print_json, print_line, print_table
from nndeploy.cli.options.help_sections import SectionedCommand
from nndeploy.cli.options.option_fields import options_given, options_of, sections_of
from nndeploy.cli.options.quiet_option import QUIET
from nndeploy.cli.options.registry_options import SIGNED_BY, registry_options, registry_options_given
from nndeploy.cli.options.value_types import ANY_FILE, FOLDER, INSTALLED_NAME
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.errors import NndeployError, UsageError
from nndeploy.installed.bundle_store import BundleStore, Installed, State, store_at
from nndeploy.installed.install import InstallOptions
from nndeploy.registry.options import RegistryOptions
from nndeploy.registry.reference import SCHEME, is_reference, reference_from_text
from nndeploy.runtime.load_options import CautiousLoadOptions
from nndeploy.values.amounts import counted, size_text

INSTALL_EXAMPLES = """\b
Examples:
  nndeploy install faces faces-1.4.nnd
  nndeploy install faces faces-1.4.nnd --max-latency 40ms      rejected if it is slower here
  nndeploy install faces faces-1.4.nnd --store /var/lib/nndeploy
  nndeploy install faces oci://registry.example/vision/faces:1.4
"""
INSTALLED_EXAMPLES = """\b
Examples:
  nndeploy installed
  nndeploy installed faces --json
"""
ROLLBACK_EXAMPLES = """\b
Examples:
  nndeploy rollback faces
  nndeploy rollback faces --to 1.4.0           for scripts: idempotent
  nndeploy rollback faces --store /var/lib/nndeploy
"""
UNINSTALL_EXAMPLES = """\b
Examples:
  nndeploy uninstall faces
  nndeploy uninstall faces --store /var/lib/nndeploy
"""
STORE = click.option(
    "--store", type=FOLDER, metavar="FOLDER",
    help="Directory of installed bundles. Default: $NNDEPLOY_STORE, else the user's own (root: /var/lib/nndeploy).",
)  # fmt: skip
NAME = click.argument("name", type=INSTALLED_NAME)
SECTIONS = sections_of(
    InstallOptions,
    {"Destination": ("store",)},
    RegistryOptions,
    {"Registry": ("password_stdin", "signed_by")},
    CautiousLoadOptions,
)


@click.command("install", cls=SectionedCommand, sections=SECTIONS, epilog=INSTALL_EXAMPLES)
@NAME
@click.argument("source", type=ANY_FILE)
@options_of(InstallOptions)
@SIGNED_BY
@registry_options
@options_of(CautiousLoadOptions)
@STORE
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print what was installed as JSON on standard output.")
def install(name: str, source: str, signed_by: str | None, store: str | None, as_json: bool, **options: Any) -> None:
    """Install a bundle under a NAME, for `run NAME@`.

    SOURCE is a file, a folder of members, or [oci://]REGISTRY/REPOSITORY:TAG. The bundle is verified, its goldens
    (stored inputs with reference outputs) are run on this machine, and it becomes current in one atomic step; the
    previous version is kept for a rollback. If anything fails, the current version stays active.
    """
    from nndeploy.installed.install import install as install_bundle

    where = store_at(store)
    asked, load = options_given(InstallOptions, options), options_given(CautiousLoadOptions, options)
    registry = registry_options_given(options)
    if is_reference(source):
        source = str(reference_from_text(source))
    elif signed_by is not None:
        raise UsageError("--signed-by is for a bundle in a registry", hint=f"a source that begins with {SCHEME}")

    def fetch(reference: str, out: Path, here: tuple[Path, ...]) -> str:
        from nndeploy.registry.pull import pull

        return str(pull(reference, out, have=here, signed_by=signed_by, options=registry).reference)

    state, trial = install_bundle(where, name, source, asked, load, fetch)
    effect_is_made()
    if as_json:
        print_json({**_to_json(where, name, state), "trial": asdict(trial)})
        return
    what = f"{counted(trial.num_outputs, 'output')} checked here, a call takes {trial.call_ns / 1e6:.3g} ms"
    print_line(f"{name}@ is {_told(state.current)}: {what} on {', '.join(trial.backends)}")
    if state.previous is not None:
        print_line(f"previous: {_told(state.previous)}{_how_to_go_back(where, name, state.previous)}")


@click.command("installed", epilog=INSTALLED_EXAMPLES)
@click.argument("name", type=INSTALLED_NAME, required=False)
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON on standard output.")
def installed(name: str | None, store: str | None, as_json: bool) -> None:
    """List the installed bundles and their previous versions."""
    where = store_at(store)
    states = {one: where.state(one) for one in ([name] if name is not None else where.names())}
    if as_json:
        print_json(
            {"store": str(where.path), "installed": [_to_json(where, one, state) for one, state in states.items()]}
        )
        return
    if not states:
        print_line(f"nothing is installed in {where.path}")
        return
    rows = [
        (
            one,
            state.current.release or "-",
            f"{state.current.sha256:.12}",
            _size(where.file(one, state.current)),
            _told(state.previous) if state.previous is not None else "-",
            state.note or "-",
        )
        for one, state in states.items()
    ]
    print_table(
        f"installed in {where.path}", ("name", "release", "sha256", "size", "previous", "rolled back because"), rows
    )


@click.command("rollback", epilog=ROLLBACK_EXAMPLES)
@NAME
@click.option(
    "--to", metavar="VERSION",
    help="Roll back only to this version: its signed release, or at least 8 digits of its SHA-256. If it is already "
    "current, nothing changes.",
)  # fmt: skip
@STORE
@click.option(
    "--allow-unsigned-code",
    is_flag=True,
    help="Roll back even if no trusted key signed the executable code of that bundle.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the current version as JSON on standard output.")
def rollback(name: str, to: str | None, store: str | None, allow_unsigned_code: bool, as_json: bool) -> None:
    """Roll NAME back to its previous version.

    That bundle is verified first, under the same trust policy as an installation. A second rollback rolls forward
    again, unless --to names the version.
    """
    from nndeploy.installed.kept_bundle import roll_back

    where = store_at(store)
    before = where.state(name)
    state = roll_back(where, name, to=to, allow_unsigned_code=allow_unsigned_code)
    effect_is_made()
    if as_json:
        print_json(_to_json(where, name, state))
        return
    print_line(f"{name}@ is {_told(state.current)} {'already' if state == before else 'again'}")


@click.command("uninstall", epilog=UNINSTALL_EXAMPLES)
@NAME
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print what was removed as JSON on standard output.")
def uninstall(name: str, store: str | None, as_json: bool) -> None:
    """Remove NAME with its current and its previous bundle.

    Programs that are running one of them go on until they end. A minimum release that was set for NAME stays: `nndeploy
    key floor NAME --remove` lifts it.
    """
    where = store_at(store)
    removed = where.remove(name)
    effect_is_made()
    if as_json:
        print_json({"name": name, "store": str(where.path), **asdict(removed)})
        return
    what = ", ".join(f"{one:.12}" for one in removed.sha256) or "no bundle was left"
    print_line(f"{name}@ is uninstalled: {what}; {size_text(removed.freed_bytes)} freed in {where.path}")


def _how_to_go_back(store: BundleStore, name: str, before: Installed) -> str:
    """Returns the command that does, "" where the floor of the name refuses it."""
    from nndeploy.installed.floors import check_floor

    try:
        check_floor(name, store.file(name, before))
    except NndeployError:
        return ""
    return f"; nndeploy rollback {name} restores it"


def _told(one: Installed) -> str:
    return f"release {one.release} ({one.sha256:.12})" if one.release else f"{one.sha256:.12}"


def _size(path: Path) -> str:
    try:
        return size_text(path.stat().st_size)
    except OSError:
        return "gone"


def _to_json(store: BundleStore, name: str, state: State) -> dict[str, Any]:
    return {"name": name, "path": str(store.file(name, state.current)), **asdict(state)}
