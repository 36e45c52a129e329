# SPDX-License-Identifier: Apache-2.0
"""Steps of a stage that are done in processes of their own.

plain_values.py   fields of a record as arrays and one text, and back
step_process.py   the parent's side: one process, and the step that it stands for
step_worker.py    the child's side
"""
