# SPDX-License-Identifier: Apache-2.0
"""The bundle that was written, signed with this machine's key where it holds code: the last step of a compile.

It is taken by the process that the user started: the children that parse models and build engines never see a key.
"""

from dataclasses import replace
from pathlib import Path

from nndeploy.bundle.report import Report
from nndeploy.trust.signing import sign_as_this_machine


def signed_by_this_machine(report: Report, path: Path) -> Report:
    """Returns the report of the bundle at `path`, signed now where it must be; what could not be done is a warning."""
    warning = sign_as_this_machine(path)
    warnings = (*report.warnings, warning) if warning else report.warnings
    return replace(report, bundle_bytes=path.stat().st_size, warnings=warnings)
