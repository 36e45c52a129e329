# SPDX-License-Identifier: Apache-2.0
"""All native code of nndeploy, compiled before it is shipped: no compile and no run needs a C compiler.

Kernels and the interpreter of plans, a library for each level of each architecture; the library of delays and the
stand-in for NVIDIA's driver, one for each architecture. `nndeploy_kernels.levels` says which libraries there are,
`build` makes them, `loading` takes those for this machine.
"""
