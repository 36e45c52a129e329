# SPDX-License-Identifier: Apache-2.0
"""The floor of a name on this box: no release below it is installed, gone back to or run, whatever the model is called.

The floor of a model is held by `nndeploy.trust.signatures`, wherever the bundle lies. Law: the release of a bundle is
what a key says that is trusted now, not what was noted when it was installed.
"""

from collections.abc import Iterator
from pathlib import Path

from nndeploy.bundle.reader import Bundle, open_bundle
from nndeploy.errors import NndeployError, PolicyError
from nndeploy.installed.bundle_store import MACHINE_STORE, BundleStore, find_name, store_at
from nndeploy.trust.signatures import SignatureVerdict, check_signatures
from nndeploy.trust.trust_store import DATA, TrustStore, trust_store


def check_floor(name: str, path: Path, where: str = "") -> None:
    """Refuses the bundle in a file under a name whose floor it is below; one of a name without a floor is not read.

    Raises:
        PolicyError: it is below, or no trusted key signed which release it is, or the trust store is damaged.
        MissingInputError, BundleError, InputOutputError: it cannot be read, or is no bundle.
    """
    store = trust_store()
    if name in store.floors:
        with open_bundle(path) as bundle:
            verdict = _verdict(name, bundle, store)
        if not verdict.is_allowed:
            raise PolicyError(f"refused as {name!r}: {verdict.problem}", where=where or f"{name}@", hint=verdict.hint)


def installed_bundle(name: str) -> Path:
    """Returns the current bundle of a name in this account's store, or else the machine's.

    Raises:
        MissingInputError: nothing is installed under it.
        DataError: its state is damaged.
        PolicyError: its release is below the floor of the name.
    """
    store, state = find_name(name)
    path = store.file(name, state.current)
    check_floor(name, path)
    return path


def newly_refused(before: TrustStore, after: TrustStore, *, of_machine: bool) -> list[str]:
    """Returns which of the current bundles here one trust store refuses that another did not, and what each is.

    They are those that this account runs by name, and with `of_machine` all of the machine's store.
    """
    found = list[str]()
    for name, bundle in _current(of_machine=of_machine):
        verdict = _verdict(name, bundle, after)
        if not verdict.is_allowed and _verdict(name, bundle, before).is_allowed:
            found.append(f"{name}@ ({verdict.claim})")
    return found


def names_and_models(*, of_machine: bool) -> list[str]:
    """Returns what a floor may be set for here: the names of installed bundles, and those of their models."""
    found = {text for name, bundle in _current(of_machine=of_machine) for text in (name, bundle.manifest.model_name)}
    return sorted(found)


def _verdict(name: str, bundle: Bundle, store: TrustStore) -> SignatureVerdict:
    """Returns what the signatures of a bundle are worth where it is used under a name."""
    verdict = check_signatures(bundle, store, DATA)
    return verdict.held_to(name, store.floors[name]) if name in store.floors else verdict


def _current(*, of_machine: bool) -> Iterator[tuple[str, Bundle]]:
    """Yields the current bundles, open; one that cannot be read is none that a floor could still refuse."""
    own, machine = store_at(None), BundleStore(MACHINE_STORE)
    hidden = set() if of_machine else {*own.names()}  # a name of the account's own goes before the machine's
    stores = [own] if own.path == machine.path else [own, machine]
    for store in stores:
        for name in store.names():
            if store is own or name not in hidden:
                try:
                    bundle = open_bundle(store.bundle(name))
                except NndeployError:
                    continue
                with bundle:
                    yield name, bundle
