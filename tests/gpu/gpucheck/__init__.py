# SPDX-License-Identifier: Apache-2.0
"""The check of the GPU tiers on a machine that has a GPU; docs/internals/gpu-check.md says how to use it.

    main.py -> stages.py -> children.py ═╤═> child.py -> stage_*.py -> rows    one process a stage, or several
                                         └─> rows.py, table.py, JSON           a crash is a row, not the end

Law: whatever a library does to its process, the table comes out, and names what was going on.
"""
