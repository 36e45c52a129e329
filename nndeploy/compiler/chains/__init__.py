# SPDX-License-Identifier: Apache-2.0
"""One chain: who takes which nodes, the pieces built and compared, what else runs them.

chain_setting.py  what stays the same while one chain is made
chain_plan.py     who runs what, and the pieces as models
own_rewrites.py   what a backend makes of a piece that it takes, before it builds it
build_piece.py    one piece through one backend, compared
lower.py          plan -> built chain, again until all is right
fallbacks.py, target_chains.py, target_variants.py  more variants: of the next backends, for other boxes
as_it_is.py       the last way out: the whole model on one backend that takes any
"""
