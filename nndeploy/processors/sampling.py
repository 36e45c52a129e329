# SPDX-License-Identifier: Apache-2.0
"""How a text is written: the settings of the step `sample` that a record may have otherwise.

Law: names, kinds and limits of these settings stand here alone, for pipelines, records and requests.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Self

from nndeploy.errors import DataError, InputError, did_you_mean
from nndeploy.processors.next_token import Choice
from nndeploy.processors.parameters import Count, Range, with_parameters

FIELD = "sampling"
"""The field of a record that says which settings it has otherwise."""
LOGPROBS = "logprobs"
"""The setting, and the field of a text that says how likely its tokens were."""
MAX_STOP_TEXTS = 64
MAX_STOP_CHARACTERS = 1000
"""Stop texts are looked for after each token, so there are so many at most, and each has so many characters."""
NO_LOGPROBS, MAX_LOGPROBS = -1, 20


@dataclass(frozen=True, slots=True)
class Sampling(Choice):
    """How tokens are chosen, and what ends a text beside its stop tokens."""

    stop_texts: tuple[str, ...] = ()
    max_tokens: Count = 256
    logprobs: Annotated[int, Range(NO_LOGPROBS, MAX_LOGPROBS)] = NO_LOGPROBS

    def __post_init__(self) -> None:
        if "" in self.stop_texts:
            raise DataError("a stop text is empty", where="stop-texts")
        if len(self.stop_texts) > MAX_STOP_TEXTS or max(map(len, self.stop_texts), default=0) > MAX_STOP_CHARACTERS:
            what = f"at most {MAX_STOP_TEXTS} texts of at most {MAX_STOP_CHARACTERS} characters each are looked for"
            raise DataError(what, where="stop-texts")

    def of_record(self, wishes: object, fixed: Collection[str] = ()) -> Self:
        """Returns the settings for a record that has `wishes`, a table of parameters; those that are `fixed` stay.

        Raises:
            InputError: it is no table, or a parameter is unknown, fixed, of another type or out of its limits.
        """
        if not isinstance(wishes, Mapping):
            raise InputError(f"must be a table of parameters, is {wishes!r:.60}", where=FIELD)
        for name in wishes:
            if name in fixed:
                raise InputError(f"{name} is fixed by the pipeline", where=FIELD)
        try:
            made: Self = with_parameters(self, wishes, FIELD)
        except DataError as err:
            raise InputError(err.what, where=err.where, hint=err.hint) from err
        for name in ("max_tokens", "logprobs"):
            most, asked = getattr(self, name), getattr(made, name)
            if asked > most:
                raise InputError(f"{name.replace('_', '-')} must be at most {most}, is {asked}", where=FIELD)
        return made


PARAMETERS = tuple(field.name.replace("_", "-") for field in fields(Sampling))
"""The settings by their names in pipelines."""


def check_names(names: Collection[str], where: str) -> None:
    """Checks that all names are those of settings.

    Raises:
        DataError: one is not.
    """
    for name in names:
        if name not in PARAMETERS:
            raise DataError(
                f"{name!r:.60} is no parameter of sampling", where=where, hint=did_you_mean(name, PARAMETERS)
            )
