#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Processes without a launcher that start and end at the same time, as points of a sweep on one machine do: none may disturb another.
#   starts_test.sh LAUNCH_PROBE
set -u
starts() { for _ in {1..60}; do "$1" probe return 0 || echo "a process ended with $?"; done; }
said=$(for _ in {1..5}; do starts "$1" & done 2>&1; wait)
[ -z "$said" ] || { printf '%s\n' "$said" | tail -n 40 >&2; exit 1; }
echo "300 processes started"
