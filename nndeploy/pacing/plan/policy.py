# SPDX-License-Identifier: Apache-2.0
"""How a total of delays is shared among operators."""

from enum import StrEnum

import numpy as np

from nndeploy.values.types import Array


class PacePolicy(StrEnum):
    """`EQUAL`: all delays are the same; `PROPORTIONAL`: each to the duration before it; `SOLVED`: slack is used too.

    With `SOLVED` no delay is less than with `PROPORTIONAL`, and branches that have time left sleep more. Where all runs
    one after another nothing has, and both are the same.
    """

    EQUAL = "equal"
    PROPORTIONAL = "proportional"
    SOLVED = "solved"

    def units(self, durations: Array, num_pairs: Array | float = 1.0) -> Array:
        """Returns what the delay behind each operator is a multiple of, the same multiple everywhere in a row.

        With `EQUAL` each of the pairs behind an operator has the same delay; else what follows from the operator's
        duration is shared by them, and nothing is slept where there is none.
        """
        if self is PacePolicy.EQUAL:
            return np.ones(len(durations)) * num_pairs
        return durations * (np.asarray(num_pairs) > 0)
