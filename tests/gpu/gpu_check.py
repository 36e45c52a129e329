# SPDX-License-Identifier: Apache-2.0
"""`python tests/gpu/gpu_check.py`: conformance, numbers and speed of the GPU tiers on this machine, in one table."""

import signal
import sys

from gpucheck.main import main

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # at once; the children end with this process
    sys.exit(main())
