# SPDX-License-Identifier: Apache-2.0
# The first run of ./bootstrap: text, tokenizer, tokens, training on two meshes, a sample. Sourced, not run. It needs phases.sh,
# $root, $build, $text and train_flags.

data=$root/outputs/quickstart-data run=$root/outputs/quickstart recipe=share/tessera/recipes/quickstart.toml
tessera=$build/bin/tessera

# Text, tokenizer.json and token file in outputs/quickstart-data, where the recipe looks for them; made aside, then renamed.
prepare_data() {
  local stamp documents=file part=$data.part source=$text
  stamp="${text:-bible-kjv} $([ -z "$text" ] || stat --format='%s bytes, %y' "$text")"
  if [ "$(cat "$data/made-from" 2>/dev/null)" = "$stamp" ]; then return; fi
  begin "text, tokenizer and tokens from ${text:-the King James Bible (package bible-kjv)}"
  rm -rf "$part"; mkdir -p "$part"
  if [ -z "$text" ]; then
    source=$part/bible.txt documents=chapters
    bible -l 200 'gen1:1-rev22:21' >"$source" || die 4 "the program bible failed; install the Debian package bible-kjv"
  fi
  "$tessera" tokenizer train --vocab-size 2048 --documents $documents -o "$part" "$source" 9>&-
  "$tessera" data prepare --tokenizer "$part" --documents $documents -o "$part/tokens" "$source" 9>&-
  printf '%s' "$stamp" >"$part/made-from"
  rm -rf "$data"; mv "$part" "$data"
  finish
}

# What was asked of the run in outputs/quickstart, to know whether an interrupted one can be resumed.
asked() { printf '%s\n' "$steps" "$(cat "$data/made-from")" ${train_flags[@]+"${train_flags[@]}"}; }

keep_older_run() { # moves a complete run, or one that was asked for otherwise, aside; none is ever removed
  [ -e "$run" ] || return 0
  if [ ! -e "$run/.complete" ] && [ "$(cat "$run/.asked" 2>/dev/null)" = "$(asked)" ]; then say "resuming the interrupted run in $run"; return; fi
  local n=1; while [ -e "$run.$n" ]; do n=$((n + 1)); done
  mv "$run" "$run.$n"
  say "moved the older run to $run.$n"
}

train() { # MESH STEPS [FLAG...]: 8 ranks on this machine
  local mesh=$1 last=$2 rc=0; shift 2
  begin "train to step $last on 8 ranks: $mesh"
  trap : INT TERM # tessera saves a checkpoint and ends with 75
  "$tessera" launch -n 8 -- train $recipe "$@" ${train_flags[@]+"${train_flags[@]}"} --training.steps "$last" || rc=$?
  trap interrupted INT TERM
  [ $rc != 75 ] || die 75 "stopped after a checkpoint in $run; run the same command to resume"
  [ $rc = 0 ] || die $rc "tessera ended with code $rc; \`man $build/share/man/man1/tessera.1\` lists the exit codes"
  finish
}

take_steps() { # sets $steps and takes --training.steps out of the user's flags
  local kept=()
  steps=100
  set -- ${train_flags[@]+"${train_flags[@]}"}
  while [ $# -gt 0 ]; do
    case $1 in
      --training.steps) steps=${2:-}; shift ;;
      --training.steps=*) steps=${1#*=} ;;
      *) kept+=("$1") ;;
    esac
    shift $(($# > 0))
  done
  [[ $steps =~ ^[1-9][0-9]{0,8}$ ]] || die 2 "--training.steps needs a whole number, not '$steps'"
  train_flags=(${kept[@]+"${kept[@]}"})
}

quickstart() {
  keep_older_run
  mkdir -p "$run"; asked >"$run/.asked"
  train "2 pipeline stages x 2 data x 2 tensor" "$steps" --parallelism.pipeline_parallel_degree 2 --parallelism.tensor_parallel_degree 2
  train "resumed on 4 pipeline stages x 2 tensor" $((steps + 20)) --parallelism.pipeline_parallel_degree 4 --parallelism.tensor_parallel_degree 2
  begin "generate text"
  "$tessera" generate "$run" --prompt "In the beginning" --max-new-tokens 64 --temperature 0.8 --top-k 40 --seed 1 | tee "$run/sample.txt"
  "$tessera" report "$run" >/dev/null
  finish
  touch "$run/.complete"
  show_phases
  say "open $run/index.html to see the run; metrics: $run/metrics.jsonl; checkpoints: $run/checkpoint"
}
