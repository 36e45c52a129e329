# SPDX-License-Identifier: Apache-2.0
"""What names places, and what is said of a text that does not."""

import pytest

from nndeploy.errors import DataError, UsageError
from nndeploy.target.place_limits import (
    PlaceLimit,
    num_calls,
    num_pools,
    places_from_tables,
    places_in,
    places_text,
)

GIB = 1 << 30


def test_names_and_limits_come_in_their_order() -> None:
    found = places_in("cuda:0=4GiB, cuda:1=512MiB ,cpu")
    assert found == (PlaceLimit("cuda:0", 4 * GIB), PlaceLimit("cuda:1", GIB // 2), PlaceLimit("cpu"))
    assert places_in(places_text(found)) == found


def test_pools_part_the_cores_by_their_highest_number() -> None:
    assert [num_pools(names) for names in (["cuda:3", "cpu"], ["cpu:0"], ["cpu:1", "cpu:0"])] == [0, 1, 2]


@pytest.mark.parametrize(("text", "message"), [
    ("gpu:0=4GiB", r"no device 'gpu:0' \(hint: did you mean 'cuda:0'\?\)"),
    ("cuda,cpu", r"no device 'cuda' \(hint: did you mean 'cuda:0'\?\)"),
    ("tpu:0", r"no device 'tpu:0' \(hint: for example cuda:0=4GiB"), ("", "no device ''"),
    ("cpu:01", "no device 'cpu:01'"), ("cuda:64", "no device 'cuda:64'"),
    ("cpu:0,cpu:0", "the place cpu:0 stands twice"), ("cpu,cpu:1", "cpu is all cores, of which a pool has some"),
    ("cpu:0=many", "--place cpu:0: 'many' is not a size"), ("cpu:0=0", "a limit is 1 byte or more"),
    (",".join(f"cuda:{i}" for i in range(17)), "spans 1 to 16 places, not 17"),
])  # fmt: skip
def test_says_what_names_no_places(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        places_in(text)


def test_a_target_file_says_them_in_tables() -> None:
    tables = [{"name": "cuda:0", "memory": "4GiB"}, {"name": "cpu"}]
    assert places_from_tables(tables, "box.toml") == (PlaceLimit("cuda:0", 4 * GIB), PlaceLimit("cpu"))


@pytest.mark.parametrize(("table", "message"), [
    ({"memory": "4GiB"}, r"box.toml: places\[0\]: a place is a table with a name"),
    ("cpu", "a place is a table with a name"),
    ({"name": "cpu", "memmory": "1GiB"}, "unknown key 'memmory' .*did you mean 'memory'"),
    ({"name": "cpu", "memory": "lots"}, "memory: 'lots' is not a size"),
    ({"name": "gpu:1"}, "box.toml: places: there is no device 'gpu:1' .*did you mean 'cuda:1'"),
])  # fmt: skip
def test_says_what_is_wrong_with_a_table(table: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        places_from_tables([table], "box.toml")


@pytest.mark.parametrize(
    ("places", "calls"), [(("cpu:0", "cpu:1"), 2), (("cpu:0", "cpu:1", "cpu:2"), 3), (("cuda:0", "cpu"), 3)], ids=str
)
def test_one_more_call_than_places_is_under_way_where_one_of_them_waits_for_a_gpu(
    places: tuple[str, ...], calls: int
) -> None:
    assert num_calls(places) == calls
