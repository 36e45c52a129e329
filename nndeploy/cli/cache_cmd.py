# SPDX-License-Identifier: Apache-2.0
"""`nndeploy cache`: what the cache of builds holds, whether it is whole, and what goes when it is too large."""

from dataclasses import asdict

import click

from nndeploy.build_cache import upkeep
from nndeploy.build_cache.local_cache import LocalCache
from nndeploy.cli.console import print_json, print_line, warn
from nndeploy.cli.option_fields import options_given
from nndeploy.cli.standard_streams import effect_is_made
from nndeploy.compiler.cached_compile import DEFAULT_CACHE_BYTES, CacheOptions, opened_cache
from nndeploy.errors import CheckError
from nndeploy.options.texts import bytes_in

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

FOLDER = click.option("--cache-dir", metavar="FOLDER", help="The folder of the cache. Default: as for compile.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON on standard output.")


@click.group("cache", epilog=EXAMPLES)
def cache() -> None:
    """Look after the cache of what was compiled before."""


@cache.command("stats", epilog=EXAMPLES_OF["stats"])
@FOLDER
@AS_JSON
def stats(cache_dir: str | None, as_json: bool) -> None:
    """Say what the cache holds."""
    opened = _opened(cache_dir)
    found = upkeep.stats(opened)
    if as_json:
        print_json({"folder": str(opened.folder), "stats": asdict(found)})
        return
    since = f", the oldest last used on {found.oldest}" if found.oldest else ""
    print_line(f"{opened.folder}: {found.entries:,} entries, {found.files:,} files, {found.size:,} bytes{since}")


@cache.command("gc", epilog=EXAMPLES_OF["gc"])
@click.option("--size", metavar="SIZE", help="What may stay, e.g. 5GiB. Default: 10GiB, or all that are used.")
@FOLDER
@AS_JSON
def gc(size: str | None, cache_dir: str | None, as_json: bool) -> None:
    """Remove what was not used for longest, and files that no entry names."""
    most = DEFAULT_CACHE_BYTES if size is None else bytes_in("--size")(size)
    opened = _opened(cache_dir)
    removed = upkeep.collect(opened, most)
    effect_is_made()
    if as_json:
        print_json({"folder": str(opened.folder), "removed": asdict(removed)})
        return
    print_line(
        f"removed {removed.entries:,} entries and {removed.files:,} files, {removed.size:,} bytes; "
        f"{removed.left:,} bytes are left"
    )
    for line in removed.why:
        print_line(f"more than {most:,} bytes are left because of {line}")


@cache.command("verify", epilog=EXAMPLES_OF["verify"])
@FOLDER
@AS_JSON
def verify(cache_dir: str | None, as_json: bool) -> None:
    """Read every entry and file; what is damaged goes, and the command ends with 1.

    An entry that no trusted key signed is told and stays: it is of another account.
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
        print_line(f"whole: {found.entries:,} entries, {found.files:,} files")
    if found.damaged:
        raise CheckError(f"{len(found.damaged)} entries and files were damaged", where=str(opened.folder))


def _opened(cache_dir: str | None) -> LocalCache:
    return opened_cache(options_given(CacheOptions, {"cache_dir": cache_dir}), warn)
