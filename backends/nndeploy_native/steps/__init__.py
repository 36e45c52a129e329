# SPDX-License-Identifier: Apache-2.0
"""What a submodel is made of: one file for each kind of step."""
