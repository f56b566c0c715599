#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# format_test.sh CLANG_FORMAT ROOT: fails where a source of the project is not as .clang-format has it.
set -euo pipefail
cd "$2"
find checkpoint include mesh share src tests cmake -name '*.cpp' -o -name '*.hpp' -o -name '*.cu' -o -name '*.cuh' |
  xargs "$1" --dry-run --Werror || { echo "format these files: $1 -i FILE"; exit 1; }
