# SPDX-License-Identifier: Apache-2.0
"""What a pipeline's TOML says of its sources: `[source]`, several `[[source]]`, and how they are joined, `[join]`.

Several sources each have a name, by which `run --input NAME=...`, pipelines and the join speak of them. Without
`[join]` their items go on as they arrive.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import get_args

from nndeploy.errors import DataError, did_you_mean
from nndeploy.files.toml_table import TomlTable
from nndeploy.stream.sources.source_rules import (
    DEFAULT_BUFFER,
    DEFAULT_JOIN_BUFFER,
    DropRule,
    JoinKind,
    JoinRules,
    MissingRule,
    ReadRules,
)

MAX_BUFFER = 65_536
MAX_RECONNECT = 1_000_000
MAX_MS = 86_400_000
MAX_SOURCES = 64
MAX_RATE_HZ = 1e6


@dataclass(frozen=True, slots=True)
class SourceTable:
    """What a pipeline says of a source.

    `kind`; `fields`, where the kind does not say; `out`, other names for the fields; `name`, "" where it is the only
    one; how it is read.
    """

    kind: str = ""
    fields: tuple[str, ...] = ()
    name: str = ""
    out: tuple[str, ...] = ()
    rules: ReadRules = field(default_factory=ReadRules)

    @property
    def place(self) -> str:
        """What messages call it."""
        return f"source {self.name!r}" if self.name else "source"


def sources_from_toml(top: TomlTable) -> tuple[tuple[SourceTable, ...], JoinRules | None]:
    """Returns the sources of a file, at least one, and how they are joined.

    Raises:
        DataError: a key is unknown, missing, of the wrong type or out of its range.
    """
    sources = tuple(_source(table) for table in _tables(top))
    names = [source.name for source in sources]
    if len(sources) > 1 and "" in names:
        raise DataError("several sources each need a name", where=top.where, hint='name = "camera"')
    if len(sources) > MAX_SOURCES:
        raise DataError(f"has {len(sources)} sources, more than {MAX_SOURCES}", where=top.where)
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"two sources are called {name!r}", where=top.where, hint='give each a name = "..."')
    join = top.table("join")
    if join is None:
        return sources, None
    if len(sources) == 1:
        raise DataError("joins several sources, and there is one", where=join.where, hint='[[source]] name = "..."')
    return sources, _join(join, names)


def _tables(top: TomlTable) -> Iterator[TomlTable]:
    if isinstance(top.values.get("source"), list):
        tables = list(top.tables("source", "source"))
        yield from tables or [TomlTable({}, top.where)]
        return
    table = top.table("source")
    yield TomlTable({}, top.where) if table is None else table


def _source(table: TomlTable) -> SourceTable:
    name = table.text("name", "")
    if name and (not name.isprintable() or "=" in name or name.startswith(("-", "@")) or len(name) > 100):
        raise DataError(f"name must be a plain word, is {name!r:.60}", where=table.where)
    out = table.texts("out")
    made = SourceTable(table.text("kind"), table.texts("fields"), name, out, _rules(table))
    table.done()
    return made


def _rules(table: TomlTable) -> ReadRules:
    drop: DropRule = table.word("drop", "none", get_args(DropRule))
    max_age_ms = table.number("max-age-ms", 0, 0, MAX_MS)
    if max_age_ms and drop == "none":
        raise DataError('max-age-ms needs drop = "oldest"', where=table.where)
    backoff_ms = table.number("backoff-ms", 100, 1, MAX_MS)
    return ReadRules(
        table.whole("buffer", DEFAULT_BUFFER, 1, MAX_BUFFER),
        drop,
        round(max_age_ms * 1e6),
        table.whole("reconnect", 0, 0, MAX_RECONNECT),
        round(backoff_ms * 1e6),
        round(table.number("backoff-most-ms", max(10_000, backoff_ms), backoff_ms, MAX_MS) * 1e6),
        table.number("rate-hz", 0, 0, MAX_RATE_HZ),
    )


def _join(table: TomlTable, names: Sequence[str]) -> JoinRules:
    by: JoinKind = table.word("by", "", get_args(JoinKind))
    fields = _join_fields(table, names)
    if by == "index" and fields:
        raise DataError("the n-th items of all are joined, whatever is in them: leave out field", where=table.where)
    if by == "key" and not fields:
        raise DataError("needs the field by which items are joined", where=table.where, hint='field = "id"')
    if by != "time" and "tolerance-ms" in table:
        raise DataError('tolerance-ms is for by = "time"', where=table.where)
    made = JoinRules(
        by,
        fields,
        table.number("tolerance-ms", 0, 0, MAX_MS) / 1e3,
        table.word("missing", "error", get_args(MissingRule)),
        table.whole("buffer", DEFAULT_JOIN_BUFFER, 1, MAX_BUFFER),
        round(table.number("wait-ms", 0, 0, MAX_MS) * 1e6),
    )
    table.done()
    return made


def _join_fields(table: TomlTable, names: Sequence[str]) -> dict[str, str]:
    """Returns the field of each source by which it is joined; one text goes for all."""
    if not isinstance(table.values.get("field"), dict):
        field = table.text("field")
        return dict.fromkeys(names, field) if field else {}
    fields = table.names("field")
    for name in fields:
        if name not in names:
            raise DataError(f"field names no source {name!r}", where=table.where, hint=did_you_mean(name, names))
    for name in names:
        if name not in fields:
            raise DataError(f"field says nothing of the source {name!r}", where=table.where)
    return fields
