# SPDX-License-Identifier: Apache-2.0
"""A compile that looks first whether the same was compiled before, on one page.

    key -> look here -> look in the shared cache -> build -> look again -> keep here -> bring to the shared cache

Comes in: what the command was given. Goes out: the report of the bundle, and how it was come by. Laws: a bundle from
the cache is byte for byte the one that the build wrote; what changed while it was built is not kept, and not written; a
cache that cannot be used costs a warning, never a compile.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nndeploy.build_cache import upkeep
from nndeploy.build_cache.entry import Entry
from nndeploy.build_cache.file_digests import FileDigests
from nndeploy.build_cache.key import PACKAGE, Parts, differing, key_of, least_differing
from nndeploy.build_cache.local_cache import MAX_NEAR, VARIABLE, LocalCache, default_cache_folder, is_key
from nndeploy.build_cache.remote_address import NEVER, PUSH, remote_address
from nndeploy.bundle.report import Report, report_from_json, report_to_json
from nndeploy.bundle.writer import check_can_create
from nndeploy.compiler.cache_key import MACHINE, is_of_file, parts_of
from nndeploy.compiler.job import Onlooker, compile_in_child
from nndeploy.compiler.options import CompileLimits
from nndeploy.compiler.outputs import BUNDLE, DECISIONS
from nndeploy.errors import BusyError, CannotCreateError, NndeployError, UsageError, one_line
from nndeploy.files.strict_json import canonical_json
from nndeploy.files.whole_files import new_file, sync_folder, wrapped_io
from nndeploy.jobs.temporary import temporary_folder
from nndeploy.options.described import described
from nndeploy.options.texts import bytes_in
from nndeploy.sandbox.child_process import StartsChildren, start_child
from nndeploy.trust.signing import machine_key
from nndeploy.trust.trust_store import trust_store

if TYPE_CHECKING:
    from nndeploy.build_cache.remote_cache import RemoteCache

_CACHE = "Cache"
DEFAULT_CACHE_BYTES = 10 << 30
REPORT = "report"
MAX_CALLS = 1_000
"""How many answers of libraries are kept of the compiles of one model."""
Warn = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class CacheOptions:
    """Where bundles that were compiled before are looked for and kept; `cache_size` in bytes."""

    cache: bool = described(
        True, "Reuse a bundle that was compiled earlier from the same model, options and packages.",
        section=_CACHE, flags=("--cache/--no-cache",),
    )  # fmt: skip
    cache_dir: str | None = described(
        None,
        "Cache directory. Default: $NNDEPLOY_CACHE_DIR (empty disables the cache), else nndeploy-builds in the "
        "user's cache directory.",
        section=_CACHE, metavar="FOLDER", is_path=True,
    )  # fmt: skip
    cache_size: int = described(
        DEFAULT_CACHE_BYTES,
        "Maximum size of the cache, e.g. 20GiB; the least recently used entries are removed first. Default: 10GiB.",
        section=_CACHE, metavar="SIZE", from_text=bytes_in("--cache-size"),
    )  # fmt: skip
    cache_remote: str = described(
        "", "URL of a shared cache, queried if the cache directory has no match. Default: none.",
        section=_CACHE, metavar="URL", from_text=remote_address,
    )  # fmt: skip
    cache_push: str = described(
        NEVER, "Whether to upload results to the shared cache: never, only with credentials, or always.",
        section=_CACHE, choices=PUSH,
    )  # fmt: skip
    cache_ca: str = described(
        "", "PEM file with the CA certificates to trust for the shared cache.",
        section=_CACHE, metavar="FILE.pem", is_path=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CacheNews:
    """How a bundle was come by: `status` is "hit", "miss", or "off" with the reason in `why`.

    `differs` names the parts that differ from the nearest build of the model that is known; None where none is.
    `origin` is the address of the shared cache from which a hit was brought, "" where it was here.
    """

    status: str
    key: str = ""
    differs: tuple[str, ...] | None = None
    why: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Compiled:
    """The report of a bundle, how it was come by, and its SHA-256, "" where no cache was used."""

    report: Report
    cache: CacheNews
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a compile finds in a process that runs several.

    `memory_share` is the limit of memory where its own limits say none: other than theirs it counts for nothing in the
    key. `remote` is what `opened_remote` gives, for compiles that share it; else one is opened where it is named.
    `start` starts its process.
    """

    memory_share: int | None = None
    remote: "RemoteCache | None" = None
    start: StartsChildren = start_child


ALONE = Surroundings()


def compile_cached(
    source: str,
    out: str | None,
    given: Mapping[str, Any],
    limits: CompileLimits,
    caching: CacheOptions,
    onlooker: Onlooker,
    warn: Warn,
    around: Surroundings = ALONE,
) -> Compiled:
    """Compiles as `compile_in_child` does, or takes what the same compile made before.

    Raises:
        BusyError: the model, or a file that an option names, changed meanwhile.
        NndeployError: what the compile raised.
    """
    taking = replace(limits, memory_limit=limits.memory_limit or around.memory_share)

    def anew(why: str) -> Compiled:
        report = compile_in_child(source, out, given, taking, onlooker, start=around.start)
        return Compiled(report, CacheNews("off", why=why))

    if out is None or given.get("dry_run"):
        return anew("nothing is to be built")
    if not caching.cache or (caching.cache_dir is None and os.environ.get(VARIABLE) == ""):
        if caching.cache and caching.cache_remote:
            warn(f"the shared cache needs a local cache folder, and {VARIABLE} is empty")
        return anew("not asked for")
    try:
        cache = opened_cache(caching, warn)
        shared = around.remote or opened_remote(caching, warn)
        parts = _parts(source, given, limits)
    except UsageError:
        raise
    except CannotCreateError as err:
        warn(f"compiled without a cache: {err}")
        return anew(err.what)
    except NndeployError as err:  # compiling says it better, or takes it
        return anew(err.what)
    key = key_of(parts)
    with cache.held(key), _telling(cache):
        taken = bundle_from_cache(cache, key, out, given)
        if taken is not None:
            return Compiled(taken[0], CacheNews("hit", key), taken[1])
        if cache.why_read_only:
            warn(f"the cache {cache.folder} is read-only: {cache.why_read_only}")
            shared = None  # what it brings goes through the folder
        if shared is not None and (brought := shared.bring(key, cache, source)) is not None:
            taken = bundle_from_cache(cache, key, out, given)
            with _warned(warn, "the cache may grow beyond its size"):
                upkeep.account(cache, [brought], caching.cache_size)
            if taken is not None:
                return Compiled(taken[0], CacheNews("hit", key, origin=shared.address), taken[1])
        check_can_create(Path(out))
        differs = least_differing(parts, (entry.parts for entry in cache.near(source)))

        keeper = _Keeper(cache, parts, source, partial(_parts, source, given, limits), caching.cache_size, warn)
        report = compile_in_child(source, out, given, taking, onlooker, keeper, around.start)
    if shared is not None and keeper.sha256:
        shared.send(key, cache)
    return Compiled(report, CacheNews("miss", key, differs), keeper.sha256)


def opened_cache(caching: CacheOptions, warn: Warn) -> LocalCache:
    """Returns the cache that options name.

    Raises:
        CannotCreateError: there is no place for it.
        PolicyError: the key or the trust store is not to be used.
    """
    folder = Path(caching.cache_dir) if caching.cache_dir is not None else default_cache_folder()
    if folder is None:
        raise CannotCreateError("this account has no cache folder", hint="--cache-dir names one")
    signer = None
    with suppress(CannotCreateError):  # an account without a place for a key reads what others built
        signer = machine_key()  # first: where it is new, the store learns of it
    return LocalCache(folder, trust_store(), signer, warn)


def opened_remote(caching: CacheOptions, warn: Warn) -> "RemoteCache | None":
    """Returns the shared cache that options name, None where they name none; nothing is sent.

    Raises:
        PolicyError: the trust store is not to be used.
    """
    if not (caching.cache and caching.cache_remote):
        return None
    from nndeploy.build_cache.remote_cache import RemoteCache

    return RemoteCache(caching.cache_remote, trust_store(), warn, caching.cache_push, caching.cache_ca)


def bundle_from_cache(cache: LocalCache, key: str, out: str, given: Mapping[str, Any]) -> tuple[Report, str] | None:
    """Writes the files of a build that is known; returns its report and digest, None where it is not known or whole.

    Raises:
        CannotCreateError, InputOutputError: a file cannot be written.
    """
    entry = cache.entry(key)
    if entry is None:
        return None
    text = cache.content(entry.outputs[REPORT]) if REPORT in entry.outputs else None
    if text is None or BUNDLE not in entry.outputs:
        return None
    for name, place in ((DECISIONS, given.get("decisions")), (BUNDLE, out)):
        if name in entry.outputs and not _written(cache, entry, name, Path(place or "")):
            return None
    return replace(report_from_json(json.loads(text)), bundle=out), entry.outputs[BUNDLE].sha256


def _written(cache: LocalCache, entry: Entry, name: str, place: Path) -> bool:
    new = new_file(place)
    try:
        with wrapped_io(place):
            if not cache.copy(entry.outputs[name], new.file.write):
                return False
        new.finish()
        with wrapped_io(place):
            sync_folder(place.parent)
        return True
    finally:
        new.discard()


def _parts(source: str, given: Mapping[str, Any], limits: CompileLimits) -> dict[str, str]:
    return parts_of(Path(source), given, limits, FileDigests())


@dataclass
class _Keeper:
    """Keeps what a compile of `source` makes from `parts`; `parts_now` says what it would be made from now."""

    cache: LocalCache
    parts: Parts
    source: str
    parts_now: Callable[[], Parts]
    most_bytes: int
    warn: Warn
    sha256: str = ""

    def known_calls(self) -> dict[str, Any]:
        entries = self.cache.near(self._calls)
        calls = {entry.parts["call"]: self._places(entry) for entry in entries if set(entry.parts) == {"call", "of"}}
        packages = {name: text for name, text in self.parts.items() if name.startswith((PACKAGE, MACHINE))}
        return {"calls": calls, "packages": canonical_json(packages).decode("ascii")}

    def keep_calls(self, made: Path) -> None:
        """Takes answers for compiles of the same files: a model that broke into its process may have forged them."""
        from nndeploy.jobs.kept_calls import answers_in  # who hits needs nothing of how libraries are asked

        if self.cache.why_read_only:
            return
        with _warned(self.warn, "what libraries answered is not kept in the cache"):
            answers = [(key, files) for key, files in answers_in(made) if is_key(key)]
            new = [
                self._added(Entry({"call": key, "of": self._calls}, {}), files, self._calls, MAX_CALLS)
                for key, files in answers
            ]
            upkeep.account(self.cache, new, self.most_bytes)

    def keep_bundle(self, report: Report, files: Mapping[str, Path]) -> None:
        if changed := differing(self.parts, self.parts_now()):
            raise BusyError(f"{', '.join(changed)} changed during the compile", where=self.source, hint="run it again")
        if self.cache.why_read_only:
            return
        with _warned(self.warn, "the bundle is not kept in the cache"), temporary_folder("report") as folder:
            text = folder / "report.json"
            text.write_text(json.dumps(report_to_json(report)), encoding="utf-8")
            seconds = sum(report.seconds.values())
            entry = self._added(Entry(self.parts, {}, seconds), {**files, REPORT: text}, self.source)
            upkeep.account(self.cache, [entry], self.most_bytes)
            self.sha256 = entry.outputs[BUNDLE].sha256

    @property
    def _calls(self) -> str:
        """What answers are found by: all files that the processes read who gave them, the model first of all."""
        return f"calls of {key_of({name: text for name, text in self.parts.items() if is_of_file(name)})}"

    def _places(self, entry: Entry) -> dict[str, tuple[str, str]]:
        return {name: (str(self.cache.place(blob)), blob.sha256) for name, blob in entry.outputs.items()}

    def _added(self, entry: Entry, files: Mapping[str, Path], near: str, most: int = MAX_NEAR) -> Entry:
        outputs = {name: self.cache.add_file(path) for name, path in files.items()}
        entry = replace(entry, outputs=outputs)
        self.cache.add(entry, near, most)
        return entry


@contextmanager
def _telling(cache: LocalCache) -> Iterator[None]:
    """Tells in the end what was there and not used: once, however often it was met."""
    try:
        yield
    finally:
        cache.tell_unused()


@contextmanager
def _warned(warn: Warn, what: str) -> Iterator[None]:
    """Makes what the cache fails of inside its block a warning: the compile goes on without."""
    try:
        yield
    except (NndeployError, OSError) as err:
        warn(f"{what}: {one_line(str(err))}")
