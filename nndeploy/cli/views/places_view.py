# SPDX-License-Identifier: Apache-2.0
"""The table of places that chains span, as `compile` and `inspect` print it."""

from collections.abc import Sequence

from nndeploy.bundle.place_reports import PlaceReport, crossing_by_chain
from nndeploy.cli.console import print_line, print_table
from nndeploy.target.place_limits import binary_size


def print_places(places: Sequence[PlaceReport]) -> None:
    """Prints where each submodel runs, what it needs there and what crosses to it, where chains span places.

    Sizes are binary ones, as limits are given.
    """
    if not places:
        return
    rows = [
        (
            row.submodel,
            row.place,
            binary_size(row.weight_bytes),
            binary_size(row.peak_bytes),
            binary_size(row.crossing_bytes),
        )
        for row in places
    ]
    columns = ("submodel", "place", "weights", "values at once", "crosses")
    print_table("places", columns, rows, right=columns[2:])
    for chain, size in crossing_by_chain(places).items():
        print_line(f"in a call of the chain {chain} {binary_size(size)} cross between places")
