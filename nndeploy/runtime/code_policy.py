# SPDX-License-Identifier: Apache-2.0
"""What is code is decided by the backends, from the files that they would load; the manifest is only compared.

In: the manifest of an open bundle and its files. Out: nothing where manifest and files agree, else a refusal; or the
manifest of what runs here without any code. Both come before the first file is loaded. A backend that does not tell
counts as code, whatever the manifest says; one that is not installed loads nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from nndeploy.bundle.manifest import Manifest, Submodel, Variant
from nndeploy.bundle.reader import Bundle
from nndeploy.errors import PolicyError, UnavailableError
from nndeploy.plugin.interface import CodeFiles, TellsCode
from nndeploy.plugin.registry import backend, is_installed

FilesOf = Callable[[Variant], Mapping[str, memoryview]]
"""Returns the verified files of a variant by the backend's own names."""


class VariantFiles(Mapping[str, memoryview]):
    """The files of a variant by the backend's own names, each read and checked when it is first asked for."""

    def __init__(self, bundle: Bundle, variant: Variant) -> None:
        self._bundle, self._members = bundle, variant.files
        self._views: dict[str, memoryview] = {}

    def __getitem__(self, name: str) -> memoryview:
        if name not in self._views:
            self._views[name] = self._bundle.member(self._members[name])
        return self._views[name]

    def sha256(self, name: str) -> str:
        """Returns the SHA-256 that a file has; it is not read."""
        return self._bundle.manifest.real(self._members[name]).sha256

    def taken(self, name: str) -> memoryview:
        """Returns a file in memory that is the caller's alone."""
        return self._bundle.taken(self._members[name])

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def files_in(bundle: Bundle) -> FilesOf:
    """Returns what gives the files of a bundle's variants."""
    return lambda variant: VariantFiles(bundle, variant)


def with_code_flags(manifest: Manifest, files_of: FilesOf) -> Manifest:
    """Returns a manifest that says of every variant here whether it is code; all of a backend that does not tell is.

    Raises:
        PolicyError: it says otherwise of a variant than its backend does of the files.
        BundleError: a file is damaged.
    """

    def flagged(submodel: Submodel, variant: Variant) -> Variant:
        if not is_installed(variant.backend):
            return variant
        code = _code_of(variant, files_of)
        if code is None:
            return replace(variant, native_code=True)
        if bool(code.names) != variant.native_code:
            raise PolicyError(_difference(variant, code), where=f"{submodel.id}/{variant.id}")
        return variant

    return _with_variants(manifest, flagged)


def without_code(manifest: Manifest, files_of: FilesOf) -> Manifest:
    """Returns the manifest with the code left out of each variant that opens without; all others are marked as code."""
    return _with_variants(manifest, lambda _, variant: _bare(variant, files_of))


def _with_variants(manifest: Manifest, changed: Callable[[Submodel, Variant], Variant]) -> Manifest:
    def of(submodels: Iterable[Submodel]) -> tuple[Submodel, ...]:
        return tuple(
            replace(one, variants=tuple(changed(one, variant) for variant in one.variants)) for one in submodels
        )

    chains = tuple(replace(chain, submodels=of(chain.submodels)) for chain in manifest.target_chains)
    return replace(manifest, submodels=of(manifest.submodels), target_chains=chains)


def _bare(variant: Variant, files_of: FilesOf) -> Variant:
    code = _code_of(variant, files_of)
    if code is None:
        return replace(variant, native_code=True)
    if not code.names or code.is_needed:
        return variant
    files = {name: member for name, member in variant.files.items() if name not in code.names}
    return replace(variant, files=files, native_code=False)


def _code_of(variant: Variant, files_of: FilesOf) -> CodeFiles | None:
    """Returns what the backend says of a variant's files, None where it is not here or does not tell."""
    if not is_installed(variant.backend):
        return None
    try:
        found = backend(variant.backend)
    except UnavailableError:
        return None
    return found.code_files(files_of(variant)) if isinstance(found, TellsCode) else None


def _difference(variant: Variant, code: CodeFiles) -> str:
    if code.names:
        return f"{', '.join(sorted(code.names))} is code for {variant.backend}, and the manifest says it holds none"
    return f"the manifest says that it holds code, and nothing in it is code for {variant.backend}"
