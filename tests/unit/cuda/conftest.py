# SPDX-License-Identifier: Apache-2.0
"""A GPU whose memory is on the host, for every test of this folder that asks for `driver`."""

from collections.abc import Iterator

import pytest

from nndeploy.cuda.current_driver import injected_driver
from nndeploy.testing.host_driver import HostDriver


@pytest.fixture
def driver() -> Iterator[HostDriver]:
    found = HostDriver()
    with injected_driver(found):
        yield found
