# SPDX-License-Identifier: Apache-2.0
"""batch.json says all of a batch, in one order; its schema and its reader take the same texts and no others."""

import copy
import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from batch_examples import ERROR, HOSTILE_NAMES, batch, every_status, finding, outcome

from nndeploy.errors import DataError, MissingInputError
from nndeploy.farm.outcome import STATUSES
from nndeploy.farm.reports.batch import GATES, NOT_JUDGED
from nndeploy.farm.reports.batch_json import batch_from_json, batch_to_json, read_batch

SCHEMA = json.loads(resources.files("nndeploy.farm.reports").joinpath("batch.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one_and_knows_every_status_and_gate() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$defs"]["job"]["properties"]["status"]["enum"] == list(STATUSES)
    assert SCHEMA["$defs"]["finding"]["properties"]["gate"]["enum"] == [*GATES, NOT_JUDGED]


@pytest.mark.parametrize("names", ["{}", "ü{}", HOSTILE_NAMES])
def test_a_batch_is_told_whole_by_its_schema_and_survives(names: str) -> None:
    made = every_status(names)
    text = batch_to_json(made)
    data = json.loads(text)
    VALIDATOR.validate(data)
    assert data["summary"] == dict.fromkeys(STATUSES, 2) | {"total": 2 * len(STATUSES)}
    assert batch_to_json(batch_from_json(text)) == text
    if names != HOSTILE_NAMES:  # which holds what is no Unicode
        assert batch_from_json(text) == made


def test_an_empty_batch_is_told_too() -> None:
    VALIDATOR.validate(json.loads(batch_to_json(batch())))
    assert batch_from_json(batch_to_json(batch())) == batch()


def test_the_order_in_which_jobs_end_leaves_no_trace_and_a_job_is_a_line() -> None:
    made = every_status()
    text = batch_to_json(made)
    assert batch_to_json(batch(*reversed(made.outcomes), findings=made.findings)) == text
    assert [json.loads(line.rstrip(b","))["job"] for line in text.splitlines() if line.startswith(b'  {"job"')] == [
        one.job for one in made.outcomes
    ]


def places_in(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from places_in(value, (*path, key))


def test_schema_and_reader_refuse_the_same() -> None:
    """Every value is replaced by one of each kind: what the schema takes the reader takes, counts apart."""
    job = outcome(variant="v", key="ab" * 32, miss=("options",), warnings=("w",), error=ERROR, log_tail=("last",))
    whole = json.loads(batch_to_json(batch(job, findings=(finding(),))))
    tried = 0
    for path in [path for path in places_in(whole) if path and path[0] != "summary"]:
        for value in (None, True, -1, 0, 1.5, 300, "", "ok", [], {}, [1], {"x": 1}):
            mutant = copy.deepcopy(whole)
            place = mutant
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = value
            try:
                batch_from_json(json.dumps(mutant).encode())
                is_read = True
            except DataError as err:
                is_read = "counts" in err.what or "twice" in err.what
            assert is_read == VALIDATOR.is_valid(mutant), (path, value)
            tried += 1
    assert tried > 500


def test_every_cut_is_refused() -> None:
    text = batch_to_json(batch(outcome(), outcome("b", status="crash"), findings=(finding(),)))
    for length in range(len(text) - 2):
        with pytest.raises(DataError):
            batch_from_json(text[:length])


def changed(**fields: Any) -> bytes:
    return json.dumps(json.loads(batch_to_json(batch(outcome()))) | fields).encode()


@pytest.mark.parametrize(("text", "words"), [
    (changed(schema="nndeploy.batch.2"), "nndeploy.batch.1"), (changed(started="yesterday"), "a time with its zone"),
    (changed(started="2026-11-26T02:00:00"), "a time with its zone"), (changed(jobs=[]), "counts"),
    (batch_to_json(batch(outcome(), outcome())), "a job is there twice"), (changed(more=1), "unknown field 'more'"),
    (b"\xff", "ASCII"), (b"[]", "expected an object"),
])  # fmt: skip
def test_what_is_no_batch_is_refused_in_words(text: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        batch_from_json(text)


def test_an_error_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "last.json"
    with pytest.raises(MissingInputError, match=r"last\.json"):
        read_batch(path)
    path.write_bytes(b"{}")
    with pytest.raises(DataError, match=r"last\.json"):
        read_batch(path)
    path.write_bytes(batch_to_json(every_status()))
    assert read_batch(path) == every_status()
