# SPDX-License-Identifier: Apache-2.0
"""A bundle becomes the one that a name stands for: brought -> whole and trusted -> tried on this box -> switched.

Comes in: a file, a folder of members or a reference into a registry. Goes out: the state of the name. Law: whatever
fails, the bundle that was current before still is, and nothing is left behind.
"""

import contextlib
import os
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from nndeploy.bundle.container import MAX_MEMBERS, Buffer, check_name, encode_container
from nndeploy.bundle.manifest import Manifest
from nndeploy.bundle.manifest_json import MANIFEST_NAME
from nndeploy.bundle.reader import open_bundle
from nndeploy.bundle.writer import replace_file
from nndeploy.errors import (
    BundleError,
    CheckError,
    DataError,
    InputOutputError,
    MissingInputError,
    NndeployError,
)
from nndeploy.files.confined_file import read_confined
from nndeploy.files.pieces import pieces_of, sha256_of
from nndeploy.files.whole_files import MAX_FILE_BYTES
from nndeploy.installed.bundle_store import BundleStore, Installed, State
from nndeploy.installed.floors import check_floor
from nndeploy.installed.interface import can_replace, interface_text
from nndeploy.options.described import described
from nndeploy.options.texts import bytes_in, nanoseconds_in
from nndeploy.runtime.load_options import LoadOptions
from nndeploy.runtime.program import load_bundle
from nndeploy.runtime.verify_bundle import verify
from nndeploy.sandbox.child_process import descendants
from nndeploy.trust.signatures import check_signatures
from nndeploy.trust.trust_store import DATA, trust_store

MAX_BUNDLE_BYTES = 1 << 44
TRIAL_CALLS = 7
_RESET_MOST = Path("/proc/self/clear_refs")

Fetch = Callable[[str, Path, tuple[Path, ...]], str]
"""Brings the bundle that a reference names to a path; those that are here already may have some of its members.

Returns the reference with what pins it."""


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """What a bundle must keep to on this box."""

    max_latency_ns: int = described(
        0, "Reject the bundle if a call with its sample inputs takes longer.",
        section="Acceptance", flags=("--max-latency",), metavar="40ms",
        from_text=nanoseconds_in("--max-latency"),
    )  # fmt: skip
    max_memory: int = described(
        0, "Reject the bundle if loading and running it takes more memory.", section="Acceptance",
        metavar="200MiB", from_text=bytes_in("--max-memory"),
    )  # fmt: skip
    needs_goldens: bool = described(
        True, "Accept a bundle without reference outputs, although its results cannot be checked here.",
        section="Acceptance", flags=("--allow-uncompared",),
    )  # fmt: skip
    keeps_interface: bool = described(
        True, "Accept a bundle whose inputs or outputs differ from the current one's; callers of NAME@ must adapt.",
        section="Acceptance", flags=("--replace-interface",),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trial:
    """What a bundle did on this box: its chain, who runs each submodel, outputs compared, a call, memory taken."""

    chain: str
    backends: tuple[str, ...]
    num_outputs: int
    call_ns: int
    memory_bytes: int


def install(
    store: BundleStore, name: str, source: str, options: InstallOptions, load: LoadOptions, fetch: Fetch
) -> tuple[State, Trial]:
    """Installs a bundle under a name; `fetch` brings those that a registry has.

    Raises:
        MissingInputError: there is no such source.
        BundleError: it is no bundle, or damaged.
        PolicyError: it may not be used here, or its release is below the floor of this name.
        UnavailableError: this box cannot run it.
        CheckError: its results are others here than where it was compiled, its inputs or outputs others than those of
            the current bundle, or it keeps not to the options.
        BusyError: another process changes this name.
        CannotCreateError, InputOutputError: it cannot be written.
    """
    with store.changing(name) as incoming:
        source = _bring(source, incoming, fetch, _bundles_here(store, name))
        try:
            release = _trusted_release(incoming)
            check_floor(name, incoming, source)
            if options.keeps_interface:
                _check_interface(store, name, incoming)
            trial = _tried(incoming, source, options, load)
        except NndeployError as err:
            err.where = err.where.replace(str(incoming), source)  # what is gone when this is read tells nobody anything
            raise
        new = Installed(sha256_of(incoming, MAX_BUNDLE_BYTES), release, source)
        return store.take(name, incoming, new, options.max_latency_ns), trial


def _bundles_here(store: BundleStore, name: str) -> tuple[Path, ...]:
    try:
        state = store.state(name)
    except MissingInputError:
        return ()
    found = (store.file(name, one) for one in (state.current, state.previous) if one is not None)
    return tuple(path for path in found if path.exists())


def _bring(source: str, incoming: Path, fetch: Fetch, here: tuple[Path, ...]) -> str:
    """Puts the bundle where it can be tried; returns where it came from."""
    if source.startswith("oci://"):
        return fetch(source, incoming, here)
    if not source:
        raise MissingInputError("no bundle is given")
    path = Path(source)
    if path.is_dir():
        replace_file(incoming, encode_container(_members_of(path)))
    else:
        replace_file(incoming, pieces_of(path, MAX_BUNDLE_BYTES))
    return source


def _members_of(folder: Path) -> dict[str, Buffer]:
    """Returns the members that a folder holds; nothing is read of one that is no folder of members."""
    names = list[str]()
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            continue
        names.append(path.relative_to(folder).as_posix())
        if len(names) > MAX_MEMBERS:
            raise BundleError(
                f"not a folder of bundle members: it has more than {MAX_MEMBERS} files", where=str(folder)
            )
    if MANIFEST_NAME not in names:
        raise BundleError(f"not a folder of bundle members: it has no {MANIFEST_NAME}", where=str(folder))
    try:
        for name in names:
            check_name(name)
        return {name: read_confined(folder, name, MAX_FILE_BYTES) for name in sorted(names)}
    except NndeployError as err:
        err.within(str(folder))
        raise


def _trusted_release(path: Path) -> str:
    with open_bundle(path) as bundle:
        return check_signatures(bundle, trust_store(), DATA).trusted_release


def _check_interface(store: BundleStore, name: str, incoming: Path) -> None:
    """Refuses a bundle that cannot be called as the current one; one that cannot be read any more holds up nobody."""
    try:
        with open_bundle(store.bundle(name)) as current:
            old = current.manifest
    except (MissingInputError, DataError, InputOutputError):
        return
    with open_bundle(incoming) as bundle:
        new = bundle.manifest
    if not can_replace(old, new):
        what = f"other inputs or outputs than the current bundle: {interface_text(new)}; current: {interface_text(old)}"
        raise CheckError(what, where=str(incoming), hint="--replace-interface")


def _tried(path: Path, source: str, options: InstallOptions, load: LoadOptions) -> Trial:
    """Returns what the bundle did here; its goldens were run and agree."""
    before = _memory_from_now()
    found = verify(path, load=lambda one: load_bundle(one, load))
    if options.needs_goldens and not found.outputs:
        raise CheckError(
            "the bundle contains no goldens, so its results cannot be checked here",
            where=source,
            hint="--allow-uncompared",
        )
    if found.failed:
        wrong = found.failed[0]
        raise CheckError(
            f"{len(found.failed)} of {len(found.outputs)} outputs differ on this machine, first {wrong.output!r:.60}",
            where=source,
        )
    how = load if load.isolates_always else replace(load, isolate="none", memory_limit=None)  # as it will run
    with load_bundle(path, how) as program:
        manifest, chain = program.manifest, program.chain.id
        call_ns = _call_ns(path, manifest, program.run) if manifest.goldens else 0
        backends = tuple(dict.fromkeys(choice.backend for choice in program.choices))
        memory = max(0, sum(map(_most_memory, (os.getpid(), *descendants(os.getpid())))) - before)
    if options.max_latency_ns and call_ns > options.max_latency_ns:
        raise CheckError(
            f"a call takes {call_ns / 1e6:.3g} ms here, at most {options.max_latency_ns / 1e6:.3g} ms are allowed",
            where=source,
        )
    if options.max_memory and memory > options.max_memory:
        raise CheckError(f"it takes {memory:,} bytes here, at most {options.max_memory:,} are allowed", where=source)
    return Trial(chain, backends, len(found.outputs), call_ns, memory)


def _call_ns(path: Path, manifest: Manifest, run: Callable[..., object]) -> int:
    """Returns the median time of a call with the first golden's inputs, after one that warms up."""
    with open_bundle(path) as bundle:
        inputs = bundle.values(manifest.goldens[0].inputs)
    times = []
    for _ in range(1 + TRIAL_CALLS):
        start = time.perf_counter_ns()
        run(inputs)
        times.append(time.perf_counter_ns() - start)
    return int(statistics.median(times[1:]))


def _memory_from_now() -> int:
    """Returns how much memory this process has, in bytes; `_most_memory` counts from here."""
    with contextlib.suppress(OSError):  # a kernel without it counts what was before too
        _RESET_MOST.write_text("5")
    return _most_memory(os.getpid())


def _most_memory(pid: int) -> int:
    """Returns the most memory that a process had, in bytes; what `getrusage` says is also that of its parent."""
    with contextlib.suppress(OSError):  # one that has just ended
        if found := re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text()):
            return int(found[1]) * 1024
    return 0
