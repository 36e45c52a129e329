# SPDX-License-Identifier: Apache-2.0
"""Several sources as one stream of items: as they arrive, or those that belong together as one.

In come `Readers` and what the sources are called; out come items, numbered in the order in which they go on. An item
that is of one source names it; one that joins several has the fields of all of them, and the error of the first that
cannot be read. What finds no partner goes on as an error, or is only counted, as the rules of the join say.
"""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from nndeploy.errors import InputError, NndeployError
from nndeploy.runtime.plain_data import only_element
from nndeploy.stream.items import Item, failing
from nndeploy.stream.sources.joiners import Group, Joiner, Waiting
from nndeploy.stream.sources.readers import Arrived, Readers
from nndeploy.stream.sources.source_rules import JoinRules
from nndeploy.values.types import Value


def merged_items(readers: Readers, names: Sequence[str]) -> Iterator[Item]:
    """Yields the items of all sources as they arrive."""
    readers.start()
    every, index = range(len(names)), 0
    while (found := readers.next_of(every)) is not None:
        if isinstance(found, Arrived):
            yield replace(found.item, index=index, source=names[found.source])
            index += 1


def joined_items(readers: Readers, names: Sequence[str], rules: JoinRules) -> Iterator[Item]:
    """Yields one item for each group of items that belong together, and those that find no partner."""
    for index, item in enumerate(_joined(readers, names, rules)):
        yield replace(item, index=index)


def _joined(readers: Readers, names: Sequence[str], rules: JoinRules) -> Iterator[Item]:
    readers.start()
    joiner, figures = Joiner(names, rules), readers.figures()
    num_taken, num_open = [0] * len(names), len(names)

    def told(groups: Iterator[Group]) -> Iterator[Item]:
        for group in groups:
            if not group.reason:
                yield _joined_item([one.item for one in group.members])
                continue
            (one,) = group.members
            figures[one.source].num_unmatched += 1
            if rules.missing != "drop":
                yield _failed(one.item, names[one.source], InputError(group.reason, hint="see missing in [join]"))

    while num_open:
        found = readers.next_of(joiner.wanted(), joiner.deadline_ns())
        if isinstance(found, Arrived):
            key = _key_of(found, num_taken[found.source], names, rules)
            num_taken[found.source] += 1
            if isinstance(key, NndeployError):
                yield _failed(found.item, names[found.source], key)
            else:
                yield from told(joiner.put(key))
        elif found is not None:
            num_open -= 1
            yield from told(joiner.end(found))
        elif readers.is_stopped:
            return
        yield from told(joiner.expired(time.monotonic_ns()))


def _key_of(found: Arrived, number: int, names: Sequence[str], rules: JoinRules) -> Waiting | NndeployError:
    """Returns an item with what it is joined by, or why it has none."""
    one = Waiting(found.source, found.item, found.at_ns)
    if rules.by == "index":
        one.key = number
        return one
    field = rules.fields.get(names[found.source], "")
    if not field:
        one.time = found.at_ns / 1e9
        return one
    try:
        value, one.item = _value_of(found.item, field)
        if rules.by == "key":
            one.key = _hashable(value, field)
        else:
            one.time = _seconds(value, field)
    except NndeployError as err:
        return err
    return one


def _value_of(item: Item, field: str) -> tuple[Value, Item]:
    """Returns the value of a field; where the item had to be read for it, with the item as it was read."""
    if field in item.known:
        return item.known[field], item
    values = item.load()
    if field not in values:
        raise InputError(f"the record has no field {field!r}, by which it would be joined")
    return values[field], replace(item, load=lambda: values)


def _hashable(value: Value, field: str) -> Hashable:
    plain = only_element(value)
    if isinstance(plain, str | bytes | int) or (isinstance(plain, float) and plain == plain):
        return plain
    raise InputError(f"the field {field!r}, by which it would be joined, is no text or number")


def _seconds(value: Value, field: str) -> float:
    plain = only_element(value)
    if isinstance(plain, int | float) and abs(plain) < float("inf"):
        return float(plain)
    raise InputError(f"the field {field!r}, by whose time it would be joined, is no number of seconds")


def _joined_item(items: Sequence[Item]) -> Item:
    origin = " + ".join(item.origin for item in items)
    return Item(0, origin, items[0].stem, partial(_all_fields, items))


def _all_fields(items: Sequence[Item]) -> dict[str, Value]:
    """Returns the fields of all; one that several have is that of the first."""
    fields: dict[str, Value] = {}
    for item in items:
        try:
            fields = {**item.load(), **fields}
        except NndeployError as err:
            err.about(item.origin)
            raise
    return fields


def _failed(item: Item, source: str, error: NndeployError) -> Item:
    return replace(item, load=failing(error), source=source, known={})


def renamed(item: Item, names: Mapping[str, str]) -> Item:
    """Returns an item whose fields have other names."""
    known = {names.get(name, name): value for name, value in item.known.items()}
    return replace(item, load=partial(_renamed_fields, item.load, names), known=known)


def _renamed_fields(load: Callable[[], dict[str, Value]], names: Mapping[str, str]) -> dict[str, Value]:
    return {names.get(name, name): value for name, value in load().items()}
