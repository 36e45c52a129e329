# SPDX-License-Identifier: Apache-2.0
"""Reports are written whole where they were asked for; one that cannot be written does not keep the others."""

import errno
import json
import os
from pathlib import Path

import pytest
from batch_examples import batch, every_status, outcome

from nndeploy.errors import CannotCreateError, InputOutputError
from nndeploy.farm.reports import ReportFiles, check_reports, write_reports
from nndeploy.farm.reports.batch_json import read_batch

NAMES = {"json": "batch.json", "junit": "junit.xml", "markdown": "s.md", "metrics": "m.txt", "page": "index.html"}


def files_in(folder: Path) -> ReportFiles:
    return ReportFiles(**{key: folder / name for key, name in NAMES.items()})


def test_all_that_were_asked_for_are_there_in_a_folder_that_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "report" / "night"
    write_reports(every_status(), files_in(folder), tmp_path, {})
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES.values())
    assert read_batch(folder / "batch.json") == every_status()
    beginnings = {path.suffix: path.read_bytes()[:5] for path in folder.iterdir() if path.suffix != ".json"}
    assert beginnings == {".xml": b"<?xml", ".md": b"## Ba", ".txt": b"# TYP", ".html": b"<!doc"}
    assert "../../dist/out.nnd" in (folder / "index.html").read_text(encoding="utf-8")


def test_nothing_is_written_that_was_not_asked_for(tmp_path: Path) -> None:
    write_reports(batch(outcome()), ReportFiles(), tmp_path, {"GITHUB_STEP_SUMMARY": ""})
    assert list(tmp_path.iterdir()) == []


def test_one_that_cannot_be_written_does_not_keep_the_others(tmp_path: Path) -> None:
    (tmp_path / "batch.json").mkdir()
    (tmp_path / "s.md").mkdir()
    with pytest.raises(CannotCreateError, match=r"batch\.json"):
        write_reports(batch(outcome()), files_in(tmp_path), tmp_path, {})
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"junit.xml", "m.txt", "index.html"}


def test_a_folder_that_cannot_be_made_is_an_error_that_names_the_report(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotCreateError, match=r"m\.txt"):
        write_reports(batch(), ReportFiles(metrics=tmp_path / "file" / "m.txt"), tmp_path, {})


@pytest.mark.parametrize("name", ["folder", "file/batch.json", "link"])
def test_a_report_that_could_not_be_written_is_found_before_the_batch(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("elsewhere")
    with pytest.raises(CannotCreateError, match=str(tmp_path / name)):
        check_reports(ReportFiles(json=tmp_path / name))
    check_reports(files_in(tmp_path / "new" / "folder"))
    assert list((tmp_path / "new/folder").iterdir()) == []


def test_the_summary_of_a_step_is_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_text("before")
    write_reports(batch(outcome()), ReportFiles(), tmp_path, {"GITHUB_STEP_SUMMARY": str(path)})
    write_reports(batch(outcome("b")), ReportFiles(), tmp_path, {"GITHUB_STEP_SUMMARY": str(path)})
    text = path.read_text()
    assert text.startswith("before\n## Batch: 1 job,")
    assert text.count("## Batch") == 2
    assert "<code>b</code>" in text


def test_a_summary_is_made_where_there_is_none(tmp_path: Path) -> None:
    write_reports(batch(outcome()), ReportFiles(), tmp_path, {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary")})
    assert (tmp_path / "summary").read_text().startswith("## Batch")


def test_a_summary_stays_below_what_github_takes_of_one_step(tmp_path: Path) -> None:
    path = tmp_path / "summary"
    path.write_bytes(b"x" * 900_000)
    made = batch(*(outcome(f"m{number}", status="crash") for number in range(2000)))
    write_reports(made, ReportFiles(), tmp_path, {"GITHUB_STEP_SUMMARY": str(path)})
    assert 1_000_000 < path.stat().st_size <= 1 << 20
    assert "There was no room for" in path.read_text()


@pytest.mark.parametrize("name", ["folder", "fifo", "nowhere/summary", "nul\0"])
def test_a_summary_that_is_no_file_is_refused_and_does_not_hang(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(CannotCreateError, match="summary of the step"):
        write_reports(batch(), ReportFiles(), tmp_path, {"GITHUB_STEP_SUMMARY": str(tmp_path / name)})


def test_a_summary_that_does_not_fit_on_the_disk_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "summary"
    path.write_text("before")
    write, calls = os.write, []

    def write_some(descriptor: int, data: bytes) -> int:
        calls.append(len(data))
        if len(calls) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data[:7])

    monkeypatch.setattr(os, "write", write_some)
    with pytest.raises(InputOutputError, match="No space left"):
        write_reports(batch(outcome()), ReportFiles(), tmp_path, {"GITHUB_STEP_SUMMARY": str(path)})
    monkeypatch.undo()
    assert len(calls) == 4
    assert path.read_text() == "before"


def test_equal_batches_give_equal_files(tmp_path: Path) -> None:
    made = every_status()
    folders = tmp_path / "a", tmp_path / "b"
    for folder, outcomes in zip(folders, (made.outcomes, made.outcomes[::-1]), strict=True):
        write_reports(batch(*outcomes, findings=made.findings), files_in(folder), tmp_path, {})
    texts = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert texts[0] == texts[1]
    assert json.loads(texts[0]["batch.json"])["summary"]["total"] == 20
