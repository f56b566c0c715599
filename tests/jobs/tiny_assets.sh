#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes what tiny.toml reads, a tokenizer and tokens of a text of no meaning:  tiny_assets.sh TESSERA FOLDER
set -euo pipefail
tessera=$1 folder=$2
mkdir "$folder"
for i in {1..400}; do echo "Line $i of a text that has $((i * i)) words, or $((i % 7)), and one more for the tokenizer to learn from."; done >"$folder/text.txt"
"$tessera" tokenizer train --vocab-size 400 -o "$folder" "$folder/text.txt" >/dev/null
"$tessera" data prepare --tokenizer "$folder" --documents lines -o "$folder/tokens" "$folder/text.txt" >/dev/null
