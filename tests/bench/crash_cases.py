# SPDX-License-Identifier: Apache-2.0
"""All that is killed and made to fail by bench_crash_points.py."""

import crash_bundles
import crash_streams
import crash_updates

ALL = (*crash_bundles.ALL, *crash_updates.ALL, *crash_streams.ALL)
