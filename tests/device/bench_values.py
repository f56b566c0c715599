#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values of `tessera bench ... --json`, as first_hour.sh reads them:  bench_values.py <OUTPUT

Speeds are in units of 1e9 a second, and as a share of their limit where there is one.
"""
import json
import sys

text = sys.stdin.read()
begin = text.find("[\n")
if begin < 0:
    sys.exit(f"no results: {text}")
rows, _ = json.JSONDecoder().raw_decode(text, begin)
for row in rows:
    speed, unit = next((row[key], unit) for key, unit in (("flops_per_second", "GFLOP/s"), ("bytes_per_second", "GB/s")) if key in row)
    print(f"@ {row['name']}: {speed / 1e9:.1f} {unit}")
    if row.get("limit"):
        print(f"@ {row['name']}, share: {speed / row['limit']:.3f} of the limit")
