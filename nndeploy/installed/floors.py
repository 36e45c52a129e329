# SPDX-License-Identifier: Apache-2.0
"""The floor of a name on this box: no release below it is installed, gone back to or run, whatever the model is called.

The floor of a model is held by `nndeploy.trust.signatures`, wherever the bundle lies.
"""

from pathlib import Path

from nndeploy.errors import PolicyError
from nndeploy.installed.bundle_store import find_name
from nndeploy.trust.statement import release_numbers
from nndeploy.trust.trust_store import trust_store


def check_floor(name: str, release: str) -> None:
    """Refuses a release below the floor of a name; "" where no trusted key signed which it is.

    Raises:
        PolicyError: it is below, or the trust store is damaged.
    """
    least = trust_store().floors.get(name)
    if least is not None and (not release or release_numbers(release) < release_numbers(least)):
        what = f"release {release}" if release else "a bundle without a signed release"
        raise PolicyError(f"{what} is not used as {name!r}: none below {least} is allowed", hint="nndeploy key list")


def installed_bundle(name: str) -> Path:
    """Returns the current bundle of a name in this account's store, or else the machine's.

    Raises:
        MissingInputError: nothing is installed under it.
        DataError: its state is damaged.
        PolicyError: its release is below the floor of the name.
    """
    store, state = find_name(name)
    check_floor(name, state.current.release)
    return store.file(name, state.current)
