# SPDX-License-Identifier: Apache-2.0
"""Whether a bundle may be used here, and whether its code may run: what its signatures are worth to this machine.

In: an open bundle, what the operator allows. Out: a refusal, or why code is not to be run, which matters where code
would be opened: `nndeploy.runtime.select` refuses it there. A bundle of data needs no signature unless the trust store
asks for one, and costs a look for that store.
"""

from contextlib import suppress

from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_check import all_submodels
from nndeploy.bundle.reader import Bundle
from nndeploy.errors import BundleError, PolicyError
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.trust.made_here import is_made_here
from nndeploy.trust.signatures import check_signatures, holds_code
from nndeploy.trust.trust_store import CODE, DATA, trust_store


def why_no_code(bundle: Bundle, manifest: Manifest, options: LoadOptions) -> str:
    """Returns why the code of a bundle may not run here, "" where it may or there is none.

    `manifest` is the bundle's, and says what is code as `nndeploy.runtime.code_policy` does.

    Raises:
        PolicyError: the bundle may not be used at all, or the trust store is damaged.
        BundleError: the signature is of another bundle.
    """
    has_code = holds_code(manifest)
    store = trust_store()
    if store.needed[DATA] or manifest.model_name in store.floors:
        verdict = check_signatures(bundle, store, DATA)
        if not verdict.is_allowed:
            raise PolicyError(f"the bundle may not be used here: {verdict.problem}", hint=verdict.hint)
    if not has_code or options.allow_unsigned_code or not options.allow_native_code:
        return ""
    problem = check_signatures(bundle, store, CODE).problem
    return problem and f"{problem}; {_parts(manifest)}"


def is_stranger(bundle: Bundle) -> bool:
    """Returns whether nobody answers for a bundle: no trusted key signed it, and it was not made here.

    Raises:
        PolicyError: the trust store is damaged.
    """
    with suppress(BundleError):  # a signature of another bundle
        if bundle.signature and check_signatures(bundle, trust_store(), DATA, at_least=1).is_allowed:
            return False
    return not is_made_here(bundle)


def _parts(manifest: Manifest) -> str:
    """Returns which submodels are code alone, and which run without."""
    code, free = list[str](), list[str]()
    for submodel in all_submodels(manifest):
        (code if all(variant.native_code for variant in submodel.variants) else free).append(submodel.id)
    return f"only code: {', '.join(code) or 'none'}; without code: {', '.join(free) or 'none'}"
