# SPDX-License-Identifier: Apache-2.0
"""`nndeploy cache`: what the cache of builds holds, whether it is whole, and what goes when it is too large."""

from dataclasses import asdict

import click

from nndeploy.build_cache import upkeep
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.cli.console import print_json, print_line, warn
from nndeploy.cli.options.option_fields import options_given
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.compiler.cached_compile import DEFAULT_CACHE_BYTES, CacheOptions, opened_cache
from nndeploy.errors import CheckError
from nndeploy.options.texts import bytes_in
from nndeploy.values.amounts import counted

EXAMPLES = """\b
Examples:
  nndeploy cache stats
  nndeploy cache gc --size 5GiB
  nndeploy cache verify --cache-dir /srv/nndeploy-builds
"""
EXAMPLES_OF = {
    "stats": """\b
Examples:
  nndeploy cache stats
  nndeploy cache stats --json
""",
    "gc": """\b
Examples:
  nndeploy cache gc
  nndeploy cache gc --size 5GiB
  nndeploy cache gc --size 0           remove all
""",
    "verify": """\b
Examples:
  nndeploy cache verify
  nndeploy cache verify --cache-dir /srv/nndeploy-builds --json
""",
}

FOLDER = click.option("--cache-dir", metavar="FOLDER", help="Cache directory. Default: as for compile.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")


@click.group("cache", epilog=EXAMPLES)
def cache() -> None:
    """Manage the cache of compiled bundles."""


@cache.command("stats", epilog=EXAMPLES_OF["stats"])
@FOLDER
@AS_JSON
def stats(cache_dir: str | None, as_json: bool) -> None:
    """Show the contents and size of the cache."""
    opened = _opened(cache_dir)
    found = upkeep.stats(opened)
    if as_json:
        print_json({"folder": str(opened.folder), "stats": asdict(found)})
        return
    since = f", the oldest last used on {found.oldest}" if found.oldest else ""
    print_line(f"{opened.folder}: {_amounts(found.entries, found.files)}, {counted(found.size, 'byte')}{since}")


@cache.command("gc", epilog=EXAMPLES_OF["gc"])
@click.option(
    "--size", metavar="SIZE", help="Size to reduce the cache to, e.g. 5GiB; entries in use are kept. Default: 10GiB."
)
@FOLDER
@AS_JSON
def gc(size: str | None, cache_dir: str | None, as_json: bool) -> None:
    """Remove the least recently used entries, and unreferenced files."""
    most = DEFAULT_CACHE_BYTES if size is None else bytes_in("--size")(size)
    opened = _opened(cache_dir)
    removed = upkeep.collect(opened, most)
    effect_is_made()
    if as_json:
        print_json({"folder": str(opened.folder), "removed": asdict(removed)})
        return
    print_line(
        f"removed {_amounts(removed.entries, removed.files)}, {counted(removed.size, 'byte')}; "
        f"{counted(removed.left, 'byte')} left"
    )
    for line in removed.why:
        print_line(f"more than {most:,} bytes are left because of {line}")


@cache.command("verify", epilog=EXAMPLES_OF["verify"])
@FOLDER
@AS_JSON
def verify(cache_dir: str | None, as_json: bool) -> None:
    """Check every entry and file; damaged ones are removed, and the exit code is 1.

    Entries without a trusted signature are reported and kept: they belong to other users.
    """
    opened = _opened(cache_dir)
    found = upkeep.verify(opened)
    opened.tell_unused()
    effect_is_made()
    if as_json:
        print_json({"folder": str(opened.folder), "verified": asdict(found)})
    else:
        for line in found.damaged:
            print_line(f"damaged: {line}")
        print_line(f"intact: {_amounts(found.entries, found.files)}")
    if found.damaged:
        raise CheckError(f"damaged entries and files: {len(found.damaged)}", where=str(opened.folder))


def _amounts(entries: int, files: int) -> str:
    return f"{entries:,} {'entry' if entries == 1 else 'entries'}, {counted(files, 'file')}"


def _opened(cache_dir: str | None) -> LocalCache:
    return opened_cache(options_given(CacheOptions, {"cache_dir": cache_dir}), warn)
