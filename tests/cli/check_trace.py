#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks a trace file for Perfetto: check_trace.py FILE RANKS. Prints what is wrong, and the tracks."""
import collections
import json
import sys

SLACK = 0.002  # microseconds: times are rounded
events = json.load(open(sys.argv[1]))["traceEvents"]
ranks = int(sys.argv[2])
wrong = []
for event in events:
    for key, kind in [("ph", str), ("name", str), ("ts", (int, float)), ("dur", (int, float)), ("pid", int), ("tid", int)]:
        if not isinstance(event.get(key), kind):
            wrong.append(f"{event} has no {key}")
    if event["ph"] not in "MX" or event["dur"] < 0:
        wrong.append(f"{event} is neither a span nor a name")
tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
if {pid for pid, _ in tracks} != set(range(ranks)):
    wrong.append("not every rank has a process")
spans = collections.defaultdict(list)
for event in events:
    if event["ph"] == "X":
        spans[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
for place, of_track in spans.items():
    if place not in tracks:
        wrong.append(f"the track {place} has no name")
    open_spans = []
    for begin, end, name in sorted(of_track, key=lambda span: (span[0], -span[1])):
        while open_spans and open_spans[-1] <= begin + SLACK:
            open_spans.pop()
        if open_spans and end > open_spans[-1] + SLACK:
            wrong.append(f"{name} of {place} at {begin} does not nest")
        open_spans.append(end)
# A sum over all ranks ends nowhere before the last rank has begun it: the clocks are aligned.
calls = [[span for span in sorted(spans[place]) if span[2] == "all_reduce"]
         for place, name in sorted(tracks.items()) if name == "world"]
if len(calls) != ranks or len({len(of_rank) for of_rank in calls}) != 1:
    wrong.append(f"calls over all ranks: {[len(of_rank) for of_rank in calls]}")
else:
    for same in zip(*calls):
        if max(begin for begin, _, _ in same) > min(end for _, end, _ in same) + SLACK:
            wrong.append(f"the ranks' clocks differ: {same}")
print("\n".join(wrong[:5]) or "ok")
print("tracks:", ", ".join(sorted(set(tracks.values()))))
print("spans:", *sorted({name for of_track in spans.values() for _, _, name in of_track}), sep="\n  ")
