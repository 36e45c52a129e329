# SPDX-License-Identifier: Apache-2.0
"""What NumPy's threads do when they have nothing to do: sleep, in every process that is ours."""

VARIABLE = "OPENBLAS_THREAD_TIMEOUT"
SOON = "10"
"""The logarithm of the cycles that a thread of NumPy's BLAS waits for work before it sleeps, from 4 to 30.

By default each waits for some 100 ms after `import numpy` and after every product, at the full load of a core.
Measured 2026-11-23, NumPy 2.4.6, two cores: `import numpy` takes 0.08 s of processor time instead of 0.16 s, twelve
cosines of 18,000 numbers with pauses of 50 ms between them 0.007 s instead of 0.6 s.
"""
