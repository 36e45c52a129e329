# SPDX-License-Identifier: Apache-2.0
"""A processor is one step of work on one record of a stream: values of some fields in, values of others out.

A processor is a frozen dataclass. Its dataclass fields are its parameters, as they stand in a pipeline's TOML (dashes
become underscores there), and its class says which fields of a record it takes and gives:

    @dataclass(frozen=True)
    class Mirror:
        name: ClassVar[str] = "mirror"
        takes: ClassVar[tuple[str, ...]] = ("image",)
        gives: ClassVar[tuple[str, ...]] = ("image",)
        axis: Literal["x", "y"] = "x"

        def __call__(self, image: Image) -> Image: ...

A class may also have `may_take`: fields that a record need not have. Those that it has are given by keyword. Of the
fields in `reads_last`, of shape (batch, positions, n), it reads the last position alone: `compile --pipeline` then lets
the model compute no other. Fields in `hands_on` have the numbers that they are taken with, so that what is known of
these, such as that they are tokens below some number, holds of them too. What is known of the shapes of the values
that it gives, it tells in `given_shapes` (`known_shapes.py`): called with what is known of the fields that it takes, in
their order, it returns that of the fields that it gives, a tuple always.

    def given_shapes(self, image: Known) -> tuple[Known]:
        return (image,)

`ProcessorStep` is a processor in its place in a pipeline, where the fields may have other names.

Law: a processor keeps nothing between records, changes none of the values that it is given, and may be called by
several threads at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from nndeploy.errors import DataError, NndeployError, did_you_mean
from nndeploy.values.types import Value


class Processor(Protocol):
    """One step of work on one record. `takes` and `gives` may depend on the parameters."""

    @property
    def name(self) -> str:
        """What a pipeline's TOML calls it."""

    @property
    def takes(self) -> tuple[str, ...]:
        """The fields whose values it is called with, in that order."""

    @property
    def gives(self) -> tuple[str, ...]:
        """The fields whose values it returns: one value where it is one field, else a tuple."""

    def __call__(self, *values: Any, **optional: Any) -> Value:
        """Returns the values of the fields that it gives; `optional` are those of `may_take` that the record has.

        Raises:
            DataError: this record's values cannot be worked on.
        """


@dataclass(frozen=True, slots=True)
class ProcessorStep:
    """A processor in a pipeline; `takes` and `gives` are the names of its fields there, in the processor's order."""

    processor: Processor
    takes: tuple[str, ...]
    gives: tuple[str, ...]

    @property
    def may_take(self) -> tuple[str, ...]:
        """The fields that it also takes where a record has them; their names are always the processor's."""
        return tuple(getattr(self.processor, "may_take", ()))

    def __call__(self, fields: Mapping[str, Value]) -> dict[str, Value]:
        """Returns the fields that the processor gives; those of the record are left as they are.

        Raises:
            DataError: a field is missing, or the processor failed on these values.
        """
        name = self.processor.name
        values = [_field(fields, field, name) for field in self.takes]
        optional = {field: fields[field] for field in self.may_take if field in fields}
        try:
            result = self.processor(*values, **optional)
        except NndeployError as err:
            err.within(f"step {name!r}")
            raise
        except Exception as err:  # a third party's processor may fail in any way; the stream goes on
            raise DataError(f"failed: {type(err).__name__}: {err}", where=f"step {name!r}") from err
        return dict(zip(self.gives, self._results(result), strict=True))

    def _results(self, result: Value) -> Sequence[Value]:
        if len(self.gives) == 1:
            return (result,)
        if not isinstance(result, tuple) or len(result) != len(self.gives):
            found = f"{len(result)} values" if isinstance(result, tuple) else f"a {type(result).__name__}"
            what = f"gives {len(self.gives)} fields, but returned {found}"
            raise DataError(what, where=f"step {self.processor.name!r}")
        return result


def _field(fields: Mapping[str, Value], field: str, name: str) -> Value:
    try:
        return fields[field]
    except KeyError as err:
        what = f"the record has no field {field!r}"
        raise DataError(what, where=f"step {name!r}", hint=did_you_mean(field, fields)) from err
