# SPDX-License-Identifier: Apache-2.0
"""What was built once, found again by all that it was built from: bundles, and answers of backends' libraries."""
