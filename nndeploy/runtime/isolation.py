# SPDX-License-Identifier: Apache-2.0
"""Which submodels of a bundle run in a worker: none, those that are code, or all; and how one is opened there.

Where the operator says nothing (auto), those of a bundle that nobody answers for, on libraries that are not hardened: a
model of a stranger's may end the process that they run in, or take all of its memory or time. Values come and go by the
host's memory, so for the rest of the chain such a submodel stands on the CPU, wherever it computes.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from nndeploy.bundle.manifest import Submodel, Variant
from nndeploy.bundle.reader import Bundle
from nndeploy.plugin.interface import Hardened, OpenOptions, Session, TellsCode
from nndeploy.plugin.registry import backend
from nndeploy.runtime.isolated_session import CallLimits, IsolatedSession
from nndeploy.runtime.isolated_worker import WorkerRequest, manifest_sha256
from nndeploy.runtime.places import ChainChoice
from nndeploy.runtime.select import OpenVariant, SessionOptions, opened_here
from nndeploy.sandbox.memory import default_memory_limit, machine_memory_bytes

ITEM_SECONDS = 60.0
"""What a call may take where a stranger's model is isolated and nobody says."""
OPENING_SECONDS, BYTES_OPENED_A_SECOND = 60.0, 4 << 20
LEAST_MEMORY_BYTES = 1 << 30


def is_isolated(variant: Variant, options: SessionOptions, device: str) -> bool:
    """Returns whether a variant runs in a worker; one of a backend that does not tell what is code counts as code.

    On a GPU a stranger's is not: its values would be copied to the host and back.
    """
    if options.isolate == "code":
        return variant.native_code or not isinstance(backend(variant.backend), TellsCode)
    if options.isolates_always:
        return True
    return options.is_stranger and device == "cpu" and not isinstance(backend(variant.backend), Hardened)


def opener_of(bundle: Bundle, chain: ChainChoice, submodel: Submodel, options: SessionOptions) -> OpenVariant:
    """Returns what opens a variant of a submodel, here or in a worker."""

    def opened(variant: Variant, files: Mapping[str, memoryview], asked: OpenOptions) -> Session:
        if not is_isolated(variant, options, asked.device):
            return opened_here(variant, files, asked)
        num_bytes = sum(bundle.manifest.real(member).size_bytes for member in variant.files.values())
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
            memory_bytes=options.memory_limit or default_memory_bytes(num_bytes),
            given=-1,
            made=-1,
        )
        item_seconds = options.item_timeout or (None if options.isolates_always else ITEM_SECONDS)
        limits = CallLimits(OPENING_SECONDS + num_bytes / BYTES_OPENED_A_SECOND, item_seconds)
        session = IsolatedSession(request, _import_paths(), limits)
        if not options.pace:
            return session
        session.close()  # it opens; paced it can be in this process alone
        return opened_here(variant, files, asked)

    return opened


def default_memory_bytes(num_bytes: int) -> int:
    """Returns what a worker may take where nobody says, for files of so many bytes."""
    return min(default_memory_limit(), max(LEAST_MEMORY_BYTES, machine_memory_bytes() // 4) + 4 * num_bytes)


def _import_paths() -> tuple[str, ...]:
    """Returns where this process finds plugins; a worker looks there behind all that its own Python has."""
    return tuple(str(Path(path).absolute()) for path in sys.path if path)
