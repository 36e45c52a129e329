# SPDX-License-Identifier: Apache-2.0
"""All reports of a batch, each to its file; what keeps one from being written does not keep the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from nndeploy.bundle.writer import check_can_create
from nndeploy.ci_reports.step_summary import VARIABLE, append_summary
from nndeploy.errors import NndeployError
from nndeploy.farm.reports.batch import Batch
from nndeploy.farm.reports.batch_json import batch_to_json
from nndeploy.farm.reports.junit import junit
from nndeploy.farm.reports.markdown import markdown
from nndeploy.farm.reports.openmetrics import openmetrics
from nndeploy.farm.reports.page import batch_page
from nndeploy.files.whole_files import make_folder_of, write_file


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFiles:
    """Where each report goes; None where it is not asked for."""

    json: Path | None = None
    junit: Path | None = None
    markdown: Path | None = None
    metrics: Path | None = None
    page: Path | None = None


def check_reports(files: ReportFiles) -> None:
    """Makes the folders of reports, and checks before a long batch that each can be written at its end.

    Raises:
        CannotCreateError: there is no place for one.
    """
    for field in fields(files):
        path = getattr(files, field.name)
        if path is not None:
            make_folder_of(path)
            check_can_create(path)


def write_reports(batch: Batch, files: ReportFiles, fleet_folder: Path, environment: Mapping[str, str]) -> None:
    """Writes all reports of a batch; what keeps one from being written does not keep the others.

    Outputs that are relative are those of `fleet_folder`. The environment names the summary of a step, if any.

    Raises:
        CannotCreateError: there is no place for one.
        InputOutputError: writing one failed.
    """
    writers = [
        partial(_write, path, text)
        for path, text in (
            (files.json, partial(batch_to_json, batch)),
            (files.junit, partial(junit, batch)),
            (files.markdown, partial(markdown, batch)),
            (files.metrics, partial(openmetrics, batch)),
            (files.page, partial(_page, batch, files.page, fleet_folder)),
        )
        if path is not None
    ]
    if summary := environment.get(VARIABLE):
        writers.append(partial(append_summary, Path(summary), partial(markdown, batch)))
    failures = [failure for write in writers if (failure := _failure_of(write)) is not None]
    if failures:
        raise failures[0]


def _page(batch: Batch, page: Path | None, fleet_folder: Path) -> bytes:
    assert page is not None
    return batch_page(batch, page, fleet_folder).encode("utf-8", "backslashreplace")


def _write(path: Path, text: Callable[[], bytes]) -> None:
    make_folder_of(path)
    write_file(path, lambda file: file.write(text()))


def _failure_of(write: Callable[[], None]) -> NndeployError | None:
    try:
        write()
    except NndeployError as err:
        return err
    return None
