# SPDX-License-Identifier: Apache-2.0
"""Whether two results are the same: within tolerances, within the spread of right engines, or as sets of rows."""
