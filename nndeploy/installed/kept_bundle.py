# SPDX-License-Identifier: Apache-2.0
"""Whether a bundle that a store keeps is still the one that was installed, and may still be used under its name.

Trust and disks change after an install: a key is revoked, a floor is raised, a sector is lost. So what a name goes back
to is looked at again, and so is all that `doctor` tells of. Law: nothing is changed here, and no code is loaded.
"""

from dataclasses import dataclass

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.reader import open_bundle
from nndeploy.errors import BundleError, BusyError, MissingInputError, PolicyError, UsageError
from nndeploy.files.pieces import sha256_of
from nndeploy.installed.bundle_store import BundleStore, Installed, State
from nndeploy.installed.floors import check_floor
from nndeploy.runtime.code_policy import files_in, with_code_flags
from nndeploy.runtime.code_trust import why_no_code
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.trust.signatures import check_signatures
from nndeploy.trust.trust_store import CODE, trust_store

MIN_DIGITS = 8
"""So many digits of a SHA-256 may stand for it."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A whole bundle that may be used under its name; why its code may not run here and what to do, "" if it may."""

    manifest: Manifest
    why_no_code: str = ""
    hint: str = ""


def check_kept(store: BundleStore, name: str, one: Installed) -> Kept:
    """Returns what a bundle that is kept under a name is, every byte of which was read.

    Raises:
        MissingInputError: it is gone.
        BundleError: it is not the file that was installed.
        PolicyError: it may not be used here, or its release is below the floor of this name.
    """
    path = store.file(name, one)
    if sha256_of(path) != one.sha256:
        raise BundleError("it is not the file that was installed", where=str(path))
    check_floor(name, path)
    with open_bundle(path) as bundle:
        manifest = with_code_flags(bundle.manifest, files_in(bundle))
        reason = why_no_code(bundle, manifest, LoadOptions())
        return Kept(manifest, reason, check_signatures(bundle, trust_store(), CODE).hint if reason else "")


def roll_back(store: BundleStore, name: str, *, to: str | None = None, allow_unsigned_code: bool = False) -> State:
    """Makes the bundle before the current one the current one again, where it may be used; returns the new state.

    With `to`, a release or the beginning of a SHA-256, nothing is changed where the current one is that already.

    Raises:
        MissingInputError: nothing is installed, there is none before it, that is gone, or neither is the one of `to`.
        UsageError: both bundles are of the release `to`.
        BundleError: the one before is not the file that was installed.
        PolicyError: it may not be used here.
        BusyError, CannotCreateError, InputOutputError: the name cannot be changed.
    """
    state = store.state(name)
    if to is not None and _wanted(name, state, to) is state.current:
        return state
    if state.previous is not None:
        kept = check_kept(store, name, state.previous)
        if kept.why_no_code and not allow_unsigned_code:
            raise PolicyError(
                f"the previous bundle contains untrusted code: {kept.why_no_code}", where=f"{name}@",
                hint=f"{kept.hint}; --allow-unsigned-code rolls back anyway",
            )  # fmt: skip
    back = store.go_back(name, "by hand", only_from=state.current.sha256)
    if back.current != state.previous:
        raise BusyError(f"another process changed {name!r} in the meantime", where=str(store.path), hint="try again")
    return back


def _wanted(name: str, state: State, version: str) -> Installed:
    """Returns the one bundle of a name that a release, or the beginning of a SHA-256, means."""
    kept = [one for one in (state.current, state.previous) if one is not None]
    found = [one for one in kept if version and one.release == version]
    if not found and len(version) >= MIN_DIGITS:
        found = [one for one in kept if one.sha256.startswith(version.lower())]
    told = ", ".join(f"{one.release or 'no release'} {one.sha256:.12}" for one in kept)
    if not found:
        raise MissingInputError(f"no bundle of {name!r} that is here is {version!r:.80}", hint=f"here are: {told}")
    if len(found) > 1:
        raise UsageError(f"both bundles of {name!r} are {version!r}", hint=f"name it by its SHA-256: {told}")
    return found[0]
