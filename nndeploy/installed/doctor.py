# SPDX-License-Identifier: Apache-2.0
"""What a box has, lacks and trusts, what is wrong with it, and the command that mends it; nothing is run or sent.

In: a store of bundles. Out: findings. Law: no finding needs a network to be made, and what mends a backend is the hint
of its own probe.
"""

import contextlib
import datetime as dt
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from nndeploy.errors import NndeployError, PolicyError
from nndeploy.files.own_cache import own_cache_folder
from nndeploy.installed.bundle_store import STATE, BundleStore, Installed, State
from nndeploy.installed.kept_bundle import check_kept
from nndeploy.plugin.registry import backend, backend_names
from nndeploy.runtime.inspect_bundle import choices_of
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.places import choose_chain
from nndeploy.target.target import Target, host_target
from nndeploy.trust.signers import read_key
from nndeploy.trust.signing import machine_key_path
from nndeploy.trust.trust_store import CODE, trust_store, user_store
from nndeploy.values.amounts import counted

OK: Final = "ok"
LACKS: Final = "lacks"
WRONG: Final = "wrong"
KEY = "nndeploy key trust KEY.pub, the public key of who signs"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing about a box; `mend` is what to do where it is not as it should be, "" where nothing is to be done.

    `absent_hardware` names what the box would need for it ("NVIDIA GPU"): the finding is then not applicable to it.
    """

    what: str
    state: Literal["ok", "lacks", "wrong"]
    about: str
    mend: str = ""
    absent_hardware: str = ""


def findings(store: BundleStore) -> Iterator[Finding]:
    """Yields what there is to say of this box."""
    host = host_target()
    yield Finding("machine", OK, f"{host.arch}, {host.level or 'no known level'}, {counted(host.num_cores, 'core')}")
    for name in backend_names():
        yield _of_backend(name, host)
    yield from _of_folders()
    yield _of_trust()
    yield _of_key()
    yield from _of_bundles(store)


def _of_backend(name: str, host: Target) -> Finding:
    try:
        probe = backend(name).probe(host)
    except NndeployError as err:
        return Finding(f"backend {name}", LACKS, err.what, err.hint)
    except Exception as err:  # a third party's probe should refuse by a value, but may fail
        return Finding(f"backend {name}", WRONG, f"its probe failed: {type(err).__name__}: {err}")
    if probe.can_run:
        return Finding(f"backend {name}", OK, probe.version)
    return Finding(f"backend {name}", LACKS, probe.why_not, probe.hint, probe.absent_hardware)


def _of_folders() -> Iterator[Finding]:
    temporary = tempfile.gettempdir()
    if os.access(temporary, os.W_OK | os.X_OK):
        yield Finding("temporary folder", OK, temporary)
    else:
        yield Finding("temporary folder", WRONG, f"{temporary} cannot be written", "set TMPDIR to another directory")
    cache = own_cache_folder("")
    if cache is None:
        yield Finding(
            "cache folder",
            LACKS,
            "no cache directory that is private to this user",
            "set XDG_CACHE_HOME to another directory",
        )
    else:
        yield Finding("cache folder", OK, str(cache))


def _of_trust() -> Finding:
    try:
        store = trust_store()
    except PolicyError as err:
        return Finding("trust", WRONG, f"{err.where}: {err.what}", err.hint)
    today = dt.datetime.now(dt.UTC).date()
    trusted = [key for key_id, key in store.keys.items() if key_id not in store.revoked]
    names = [f"{key.name} until {key.not_after}" if key.not_after else key.name for key in trusted]
    floors = [f"{model} from {least}" for model, least in sorted(store.floors.items())]
    told = "; ".join([f"keys: {', '.join(names) or 'none'}", *floors])
    if all(key.why_not(CODE, today) for key in trusted):
        return Finding("trust", LACKS, f"{told}: code by others is not run here", KEY)
    return Finding("trust", OK, f"{told} ({user_store()})")


def _of_key() -> Finding:
    path = machine_key_path()
    if not path.exists():
        return Finding("this machine's key", OK, "not created yet; the first compile that needs it creates it")
    try:
        key_id = read_key(path).public.id
        if _is_revoked(key_id):
            return Finding(
                "this machine's key", WRONG, "it was revoked here", f"rm {path}: a compile creates a new one"
            )
        return Finding("this machine's key", OK, f"{key_id:.16}")
    except NndeployError as err:
        return Finding("this machine's key", WRONG, err.what, err.hint or f"remove {path}: a compile creates a new one")


def _of_bundles(store: BundleStore) -> Iterator[Finding]:
    names = store.names()
    if not names:
        yield Finding("installed", LACKS, f"no bundle in {store.path}", "nndeploy install NAME BUNDLE")
    for name in names:
        yield from _of_name(store, name)


def _is_revoked(key_id: str) -> bool:
    with contextlib.suppress(PolicyError):  # what is wrong with the store is told on its own
        return key_id in trust_store().revoked
    return False


def _of_name(store: BundleStore, name: str) -> Iterator[Finding]:
    try:
        state = store.state(name)
    except NndeployError as err:
        mend = f"rm {store.path / name / STATE}; nndeploy install {name} BUNDLE"
        yield Finding(f"{name}@", WRONG, _told(err), mend)
        return
    before = state.previous and _of_the_one_before(store, name, state.previous)
    goes_back = state.previous is not None and before is None  # else a rollback would be refused
    yield _of_bundle(store, name, state, f"nndeploy rollback {name}" if goes_back else "")
    if before:
        yield before


def _of_the_one_before(store: BundleStore, name: str, before: Installed) -> Finding | None:
    """Returns what is wrong with the bundle that a rollback would go back to; the name itself is none the worse."""
    what = f"{name}@, before"
    try:
        kept = check_kept(store, name, before)
    except NndeployError as err:
        return Finding(what, LACKS, _told(err), _mend(err, name))
    return Finding(what, LACKS, f"its code is not trusted: {kept.why_no_code}", kept.hint) if kept.why_no_code else None


def _of_bundle(store: BundleStore, name: str, state: State, back: str) -> Finding:
    """Returns what is to be said of the current bundle; `back` is the command that goes to the one before, if any."""
    what = f"{name}@"
    try:
        kept = check_kept(store, name, state.current)
        choices = choices_of(choose_chain(kept.manifest, LoadOptions()))
    except NndeployError as err:
        return Finding(what, WRONG, _told(err), _either(back, _mend(err, name)))
    lost = [choice.submodel for choice in choices if not choice.variant]
    if lost:
        return Finding(
            what, WRONG, f"no backend here runs {', '.join(lost)}", f"nndeploy inspect {name}@ --here says why"
        )
    note = f"; rolled back: {state.note}" if state.note else ""
    release = f"release {state.current.release}, " if state.current.release else ""
    backends = ", ".join(dict.fromkeys(choice.backend for choice in choices))
    if kept.why_no_code:
        return Finding(what, WRONG, f"its code is not trusted: {kept.why_no_code}", _either(back, kept.hint))
    return Finding(what, OK, f"{release}{state.current.sha256:.12}, {backends}{note}")


def _told(err: NndeployError) -> str:
    return f"{err.where}: {err.what}" if err.where else err.what


def _mend(err: NndeployError, name: str) -> str:
    """Returns what to do where a bundle may not be used, or is damaged: of the latter, no hint knows the name."""
    return err.hint if isinstance(err, PolicyError) and err.hint else f"nndeploy install {name} BUNDLE"


def _either(*commands: str) -> str:
    return ", or ".join(filter(None, commands))
