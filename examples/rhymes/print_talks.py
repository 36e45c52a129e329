# SPDX-License-Identifier: Apache-2.0
"""Prints what was said in each talk, from the lines that the pipeline rhymes.toml writes.

nndeploy run rhymes.nnd --input talks.jsonl --output - | python print_talks.py
"""

import json
import sys
from collections import defaultdict

texts: dict[str, str] = defaultdict(str)
for line in sys.stdin:
    said = json.loads(line)["outputs"]
    texts[said["talk"]] += "".join(said["text"])
for talk, text in texts.items():
    print(f"--- {talk}\n{text}", end="")
