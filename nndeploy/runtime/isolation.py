# SPDX-License-Identifier: Apache-2.0
"""Which submodels of a bundle run in a worker: none, those that are code, or all; and how one is opened there.

Values come and go by the host's memory, so for the rest of the chain such a submodel stands on the CPU, wherever it
computes.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from nndeploy.bundle.manifest import Submodel, Variant
from nndeploy.bundle.reader import Bundle
from nndeploy.plugin.interface import OpenOptions, Session, TellsCode
from nndeploy.plugin.registry import backend
from nndeploy.runtime.isolated_session import IsolatedSession
from nndeploy.runtime.isolated_worker import WorkerRequest, manifest_sha256
from nndeploy.runtime.places import ChainChoice
from nndeploy.runtime.select import OpenVariant, SessionOptions, opened_here


def is_isolated(variant: Variant, options: SessionOptions) -> bool:
    """Returns whether a variant runs in a worker; one of a backend that does not tell what is code counts as code."""
    if options.isolate == "code":
        return variant.native_code or not isinstance(backend(variant.backend), TellsCode)
    return options.isolate == "all"


def opener_of(bundle: Bundle, chain: ChainChoice, submodel: Submodel, options: SessionOptions) -> OpenVariant:
    """Returns what opens a variant of a submodel, here or in a worker."""

    def opened(variant: Variant, files: Mapping[str, memoryview], asked: OpenOptions) -> Session:
        if not is_isolated(variant, options):
            return opened_here(variant, files, asked)
        request = WorkerRequest(
            bundle=str(bundle.path.absolute()),
            descriptor=bundle.descriptor,
            manifest_sha256=manifest_sha256(bundle.manifest),
            chain=chain.id,
            submodel=submodel.id,
            variant=variant.id,
            device=asked.device,
            threads=asked.threads,
            custom_op_libraries=tuple(str(Path(path).absolute()) for path in asked.custom_op_libraries),
            allow_native_code=options.allow_native_code,
            given=-1,
            made=-1,
        )
        return IsolatedSession(request, _import_paths(), options.item_timeout)

    return opened


def _import_paths() -> tuple[str, ...]:
    """Returns where this process finds plugins; a worker looks there behind all that its own Python has."""
    return tuple(str(Path(path).absolute()) for path in sys.path if path)
