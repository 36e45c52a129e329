# SPDX-License-Identifier: Apache-2.0
"""A record on its way through a pipeline: from an item of the source to one outcome.

A record that goes to several different workers is taken apart into branches, and one whose list is worked on part by
part into parts; both know their `parent` and their `place` in it, and are joined into it again. A record with an error
passes every stage untouched. A record belongs to one thread at a time, so nothing here is locked.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nndeploy.errors import (
    BundleError,
    DataError,
    InputOutputError,
    MissingInputError,
    NndeployError,
)
from nndeploy.pacing.stream.protocol import ITEM_NOT_PACED, StreamItem
from nndeploy.stream.items import Item, Outcome
from nndeploy.values.types import Value

_ITEM_ERRORS = (DataError, MissingInputError, InputOutputError)


@dataclass(slots=True, eq=False)
class Record:
    """One record, or one branch or part of one.

    `fields` holds all values by name, `made` those that were made since the record was branched off. `item` is what
    the fields are still to be read from. `let_in_ns` is when it was let in, `item_ns` how long it then took.
    `num_places` says how many siblings there are. Where the stream is paced, a record and all its branches and parts
    share `paced`.
    """

    index: int
    origin: str
    stem: str
    item: Item | None = None
    fields: dict[str, Value] = field(default_factory=dict)
    made: dict[str, Value] = field(default_factory=dict)
    error: NndeployError | None = None
    stage: str = ""
    non_finite: tuple[str, ...] = ()
    run_ns: int = 0
    let_in_ns: int = 0
    item_ns: int = 0
    parent: "Record | None" = None
    place: int = 0
    num_places: int = 1
    paced: StreamItem = ITEM_NOT_PACED
    source: str = ""

    def load(self) -> None:
        """Reads the fields from the item, the first time."""
        if self.item is None:
            return
        item, self.item = self.item, None
        try:
            self.fields.update(item.load())
        except _ITEM_ERRORS as err:
            self.fail(err)

    def fail(self, error: NndeployError, stage: str = "") -> None:
        """Makes the error the record's outcome.

        Raises:
            NndeployError: the same error, where it would hit every record alike.
        """
        if not is_of_one_record(error):
            raise error
        self.error, self.stage = error.about(self.origin), stage
        self.fields, self.made = {}, {}

    def add(self, made: Mapping[str, Value]) -> None:
        """Adds fields that a step made."""
        self.fields.update(made)
        self.made.update(made)

    def branch(self, place: int, num_places: int) -> "Record":
        """Returns a record of its own with the same fields, for one of several different workers."""
        return Record(
            self.index, self.origin, self.stem, None, dict(self.fields), {}, self.error, self.stage,
            parent=self, place=place, num_places=num_places, paced=self.paced, source=self.source,
        )  # fmt: skip

    def join(self, branches: Iterable["Record"]) -> None:
        """Takes what the branches made, in their order; the first error among them becomes this record's."""
        for branch in branches:
            if self.error is None and branch.error is not None:
                self.error, self.stage = branch.error, branch.stage
            self.made.update(branch.made)
            self.fields.update(branch.made)
            self.take_notes(branch)
        if self.error is not None:
            self.fields, self.made = {}, {}

    def take_notes(self, other: "Record") -> None:
        """Adds what was noted on the way of a branch or part."""
        self.run_ns += other.run_ns
        self.non_finite += tuple(name for name in other.non_finite if name not in self.non_finite)

    def outcome(self, names: Sequence[str], may_lack: Container[str] = (), *, with_stage: bool) -> Outcome:
        """Returns what became of the record, with the fields of these names; an error with its stage if wanted.

        Fields that it `may_lack` are left out where it has none.
        """
        if self.error is not None:
            stage = self.stage if with_stage else ""
            return Outcome(self.index, self.origin, self.stem, None, self.error, stage=stage, source=self.source)
        fields = self.fields
        outputs: Mapping[str, Value] = {name: fields[name] for name in names if name in fields or name not in may_lack}
        return Outcome(
            self.index, self.origin, self.stem, outputs, None, self.non_finite, self.run_ns,
            item_ns=self.item_ns, source=self.source,
        )  # fmt: skip


def is_of_one_record(error: NndeployError) -> bool:
    """Returns whether an error concerns one record, and not every one alike."""
    return isinstance(error, _ITEM_ERRORS) and not isinstance(error, BundleError)
