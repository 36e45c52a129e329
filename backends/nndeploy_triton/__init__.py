# SPDX-License-Identifier: Apache-2.0
"""Own GPU kernels, written in Triton, compiled to cubins on any machine and launched without Triton.

supports: lowering/ (a node -> steps, or why not)
build:    lowering/ -> fusion/ -> memory.py -> kernel_specs.py -> compile_kernels.py -> cubins + plan.json
open:     session.py reads plan.json, places the constants once and launches through nndeploy.cuda
"""
