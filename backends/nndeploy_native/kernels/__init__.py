# SPDX-License-Identifier: Apache-2.0
"""What the C templates of ../c need at compile time: packed weights, chosen windows, the text of a step."""
