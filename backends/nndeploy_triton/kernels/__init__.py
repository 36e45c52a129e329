# SPDX-License-Identifier: Apache-2.0
"""The kernels, one file a family, in Triton's language. Importing a module here imports Triton.

Every kernel computes in float32, reads and writes float16 or float32, takes dense tensors (or views that start
somewhere in one) and checks every address against the sizes it is given. `kernel_specs.py` names them all;
docs/internals/kernels.md defines the names.
"""
