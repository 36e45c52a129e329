# SPDX-License-Identifier: Apache-2.0
"""Makes the package of tests/gpu importable, as its script does."""

import os
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
sys.path.insert(0, str(TESTS / "gpu"))
