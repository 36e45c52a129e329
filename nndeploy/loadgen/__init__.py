# SPDX-License-Identifier: Apache-2.0
"""`bench --scenario`: MLPerf's LoadGen asks the questions, a loaded bundle answers them, LoadGen's log is the verdict.

In: a `Program` and samples in memory. `rehearsal` measures the pace that LoadGen's settings need, `driver` runs one
test, `answering` answers its queries, `verdict` and `accuracy` read the logs.

Law: every sample that LoadGen issues is answered exactly once, or the test ends with the error that kept it from being.
"""
