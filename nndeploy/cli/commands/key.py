# SPDX-License-Identifier: Apache-2.0
"""`nndeploy key`: keys that sign bundles, and what this machine trusts them with."""

import stat
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nndeploy.cli.console import print_json, print_line, print_table, warn
from nndeploy.cli.options.value_types import ANY_FILE, INSTALLED_NAME
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.errors import (
    BundleError,
    CannotCreateError,
    MissingInputError,
    PolicyError,
    UsageError,
    did_you_mean,
)

if TYPE_CHECKING:
    from nndeploy.trust.trust_store import TrustStore

EXAMPLES = """\b
Examples:
  nndeploy key new farm                              farm.key signs; farm.pub goes to the devices
  nndeploy key trust farm.pub --scope code           on a device
  nndeploy key revoke farm
  nndeploy key floor faces 1.4.0                     reject releases of the model faces below 1.4.0
  nndeploy key need code=2                           two trusted keys must have signed code
"""

EXAMPLES_OF = {
    "new": """\b
Examples:
  nndeploy key new farm
  nndeploy key new keys/release
""",
    "list": """\b
Examples:
  nndeploy key list
  nndeploy key list --json
""",
    "trust": """\b
Examples:
  nndeploy key trust farm.pub
  nndeploy key trust vendor.pub --scope data --not-after 2027-12-31
  nndeploy key trust farm.pub --machine           for all accounts of this machine
""",
    "revoke": """\b
Examples:
  nndeploy key revoke farm
  nndeploy key revoke old.pub
""",
    "floor": """\b
Examples:
  nndeploy key floor faces 1.4.0
  nndeploy key floor faces 1.4.0 --machine
  nndeploy key floor faces 1.3.0 --lower
  nndeploy key floor faces --remove
""",
    "need": """\b
Examples:
  nndeploy key need code=2
  nndeploy key need code=1 data=1
""",
}

MIN_ID_DIGITS = 8
"""So many digits of an id may stand for it."""
LOWER = click.option("--lower", is_flag=True, help="Allow lowering a requirement that is already set.")
MACHINE = click.option("--machine", is_flag=True, help="Change the machine-wide trust store in /etc/nndeploy.")


@click.group("key", epilog=EXAMPLES)
def key() -> None:
    """Create signing keys, and manage the keys trusted here."""


@key.command("new", epilog=EXAMPLES_OF["new"])
@click.argument("name", type=ANY_FILE)
def new(name: str) -> None:
    """Create a key pair: NAME.key to sign with, NAME.pub to trust."""
    from nndeploy.files.whole_files import opened_folder, replace_durably, sweep_temporary
    from nndeploy.trust.signers import new_key, read_key

    if not name or name.endswith("/"):
        raise UsageError("the key has no name", hint="nndeploy key new farm")
    private, public = Path(f"{name}.key"), Path(f"{name}.pub")
    if public.exists():
        raise CannotCreateError("is there already; a key is never overwritten", where=str(public))
    if private.exists():
        with opened_folder(private.parent) as folder:
            sweep_temporary(folder)  # the other name of a key whose making was cut off
    is_left = _is_left(private)
    made = (read_key(private) if is_left else new_key(private)).public
    replace_durably(public, made.pem.encode("ascii"))
    effect_is_made()
    if is_left:
        print_line(f"{private} was there already, and stays as it is")
    print_line(f"{private} signs: keep it secret; {public} is what others trust")
    print_line(f"id {made.id}")


def _is_left(private: Path) -> bool:
    """Returns whether a key is there that a call left which was cut off before it wrote the other half.

    Raises:
        CannotCreateError: what is there is none of such a call.
    """
    try:
        found = private.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CannotCreateError("is there already; a key is never overwritten", where=str(private))
    return True


@key.command("list", epilog=EXAMPLES_OF["list"])
@click.option("--json", "as_json", is_flag=True, help="Print the trust store as JSON on standard output.")
def list_(as_json: bool) -> None:
    """List the keys trusted here, with scope and last day."""
    from nndeploy.trust.trust_store import trust_store

    store = trust_store()
    if as_json:
        print_json(
            {
                "keys": [
                    {"id": one.public.id, "revoked": one.public.id in store.revoked, **one.to_json()}
                    for one in store.keys.values()
                ],
                "revoked": sorted(store.revoked), "floors": dict(store.floors), "needed": dict(store.needed),
            }
        )  # fmt: skip
        return
    rows = [
        (
            one.name,
            f"{one.public.id:.16}",
            "revoked" if one.public.id in store.revoked else ", ".join(sorted(one.scopes)),
            one.not_after or "-",
        )
        for one in store.keys.values()
    ]
    if rows:
        print_table("trusted keys", ("name", "id", "for", "until"), rows)
    else:
        print_line("no key is trusted here")
    for model, least in sorted(store.floors.items()):
        print_line(f"no release of {model} below {least}")
    print_line(f"signatures required: {store.needed['code']} for code, {store.needed['data']} for data")


@key.command("trust", epilog=EXAMPLES_OF["trust"])
@click.argument("file", type=ANY_FILE)
@click.option("--name", help="Name of the key. Default: the file name.")
@click.option(
    "--scope", "scopes", type=click.Choice(("code", "data")), multiple=True, default=("code",), show_default=True,
    help="What the key may sign: code (which includes data), or only data.",
)  # fmt: skip
@click.option("--not-after", metavar="YYYY-MM-DD", help="Last day on which the key is trusted, in UTC.")
@MACHINE
def trust(file: str, name: str | None, scopes: tuple[str, ...], not_after: str | None, machine: bool) -> None:
    """Trust the public key in FILE, *.pub."""
    from nndeploy.trust.public_key import read_public_key
    from nndeploy.trust.signing import trust_key
    from nndeploy.trust.trust_store import read_store

    path, until = Path(file), _day(not_after) if not_after is not None else ""
    public, called = read_public_key(path), name or path.stem
    before = read_store(_store(machine)).keys.get(public.id)
    trust_key(_store(machine), public, called, frozenset(scopes), until)
    effect_is_made()
    print_line(f"{called} ({public.id:.16}) is trusted with {_trust_text(scopes, until)}")
    if before is not None and (before.scopes, before.not_after) != (frozenset(scopes), until):
        print_line(f"before: as {before.name}, with {_trust_text(before.scopes, before.not_after)}")


@key.command("revoke", epilog=EXAMPLES_OF["revoke"])
@click.argument("named", metavar="NAME|ID|FILE")
@MACHINE
def revoke(named: str, machine: bool) -> None:
    """Revoke a key permanently, by NAME, ID or FILE."""
    from nndeploy.trust.trust_store import change_store, trust_store

    ids = _ids(named, trust_store())
    change_store(_store(machine), lambda old: replace(old, revoked=old.revoked | set(ids)))
    effect_is_made()
    print_line(f"revoked: {', '.join(f'{one:.16}' for one in ids)}")


@key.command("floor", epilog=EXAMPLES_OF["floor"])
@click.argument("model", type=INSTALLED_NAME)
@click.argument("release", required=False)
@click.option("--remove", is_flag=True, help="Lift the minimum release of MODEL.")
@click.option("--refuse-current", is_flag=True, help="Set it even if it refuses a bundle that is current here.")
@LOWER
@MACHINE
def floor(model: str, release: str | None, remove: bool, refuse_current: bool, lower: bool, machine: bool) -> None:
    """Reject releases of MODEL that are older than RELEASE.

    MODEL is the name in the bundle, or the name it is installed under. The release must be signed by a trusted key. A
    bundle that is current here and would be refused is named, and nothing changes.
    """
    from nndeploy.trust.trust_store import trust_store

    if remove and release is None:
        _remove_floor(model, machine)
    elif release is None or remove:
        raise UsageError("either a RELEASE or --remove is needed", hint=f"nndeploy key floor {model} 1.4.0")
    else:
        _set_floor(model, release, machine, lower=lower, refuse_current=refuse_current)
    least = trust_store().floors.get(model)
    print_line(
        f"{model} has no minimum release" if least is None else f"no release of {model} below {least} is used here"
    )


def _set_floor(model: str, release: str, machine: bool, *, lower: bool, refuse_current: bool) -> None:
    from nndeploy.installed.floors import names_and_models, newly_refused
    from nndeploy.trust.statement import check_release
    from nndeploy.trust.trust_store import MACHINE_STORE, read_store, user_store

    least = check_release(release)
    other = read_store(user_store() if machine else MACHINE_STORE)
    refused = list[str]()

    def raised(old: "TrustStore") -> "TrustStore":
        new = replace(old, floors={**old.floors, model: least})
        refused.extend(newly_refused(old.joined(other), new.joined(other), of_machine=machine))
        if refused and not refuse_current:
            raise PolicyError(
                f"this refuses what is current: {'; '.join(refused)}",
                hint=f"install a signed release from {least} on first; --refuse-current sets it anyway",
            )
        return new

    _change(machine, raised, lowers=lower)
    for one in refused:
        warn(f"no longer runs: {one}")
    known = names_and_models(of_machine=machine)
    if model not in known:
        guess = did_you_mean(model, known)
        warn(f"nothing that is installed here is called {model!r:.80}{f' ({guess})' if guess else ''}")


def _remove_floor(model: str, machine: bool) -> None:
    from nndeploy.trust.trust_store import lifting_command, trust_store

    def lifted(old: "TrustStore") -> "TrustStore":
        if model not in old.floors:
            known = trust_store().floors
            hint = lifting_command(model) if model in known else did_you_mean(model, known)
            raise MissingInputError(f"no minimum release of {model!r:.80} is set in {_store(machine)}", hint=hint)
        return replace(old, floors={name: least for name, least in old.floors.items() if name != model})

    _change(machine, lifted, lowers=True)


@key.command("need", epilog=EXAMPLES_OF["need"])
@click.argument("numbers", metavar="SCOPE=N", nargs=-1, required=True)
@LOWER
@MACHINE
def need(numbers: tuple[str, ...], lower: bool, machine: bool) -> None:
    """Set how many trusted keys must have signed a bundle: code=2, data=1."""
    from nndeploy.trust.trust_store import MAX_NEEDED, SCOPES, trust_store

    wanted = {}
    for text in numbers:
        scope, _, number = text.partition("=")
        if scope not in SCOPES or not number.isdecimal() or int(number) > MAX_NEEDED:
            raise UsageError(
                f"{text!r:.40} is not a number of signatures", hint=f"code=2, or data=1; at most {MAX_NEEDED}"
            )
        wanted[scope] = int(number)
    if wanted.get("code") == 0:
        raise UsageError("code always needs a signature", hint="--allow-unsigned-code runs it without, for one call")
    _change(machine, lambda old: replace(old, needed={**old.needed, **wanted}), lowers=lower)
    needed = trust_store().needed
    print_line("signatures required: " + ", ".join(f"{needed[scope]} for {scope}" for scope in wanted))


def _change(machine: bool, change: "Callable[[TrustStore], TrustStore]", *, lowers: bool) -> None:
    """Changes a store; what would be lowered stays unless that was asked for, and is told where it was.

    Raises:
        PolicyError: something would be lowered.
    """
    from nndeploy.trust.trust_store import change_store, lowered

    were = list[str]()

    def changed(old: "TrustStore") -> "TrustStore":
        new = change(old)
        were.extend(lowered(old, new))
        if were and not lowers:
            raise PolicyError(f"this lowers {'; '.join(were)}", hint="--lower, if that is what you want")
        return new

    change_store(_store(machine), changed)
    effect_is_made()
    for one in were:
        print_line(f"lowered: {one}")


def _trust_text(scopes: Iterable[str], not_after: str) -> str:
    return " and ".join(sorted(scopes)) + (f" until {not_after}" if not_after else "")


def _day(text: str) -> str:
    from nndeploy.trust.trust_store import check_day

    try:
        return check_day(text)
    except BundleError as err:
        raise UsageError(err.what, hint=err.hint) from err


def _store(machine: bool) -> Path:
    from nndeploy.trust.trust_store import MACHINE_STORE, user_store

    return MACHINE_STORE if machine else user_store()


def _ids(named: str, store: Any) -> list[str]:
    """Returns the ids of the keys that a name, the beginning of an id or a file of a public key means."""
    from nndeploy.trust.public_key import read_public_key

    found = [one.public.id for one in store.keys.values() if one.name == named or one.public.id == named]
    if not found and len(named) >= MIN_ID_DIGITS:
        found = [key_id for key_id in store.keys if key_id.startswith(named)]
    if found:
        return found
    try:
        return [read_public_key(Path(named)).id]
    except MissingInputError as err:
        raise MissingInputError(
            f"no trusted key or file is called {named!r:.80}, and no file", hint="nndeploy key list"
        ) from err
