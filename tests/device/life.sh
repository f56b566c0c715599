#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What happens to a run on a GPU: saved, resumed, sent back, killed, too large. Each case is right or says what is wrong.
#   life.sh TESSERA train RANKS [FLAG...] | mixture RANKS [FLAG...] | resume | async | rewind | killed | memory | deterministic
# Inside first_hour.sh, whose function `ranks` starts the ranks.
set -uo pipefail
case=$2
. "$(dirname "$0")/../cli/job.sh" "$1"
here=$(dirname "$(realpath "$0")")
layers=4; [ "$device" = cuda ] || layers=2
job $layers 2 <<J
[checkpoint]
enable = true
interval = 2
[lr_scheduler]
total_steps = 8
[job]
share_device = true
J
[ "$device" = cuda ] || sed -i 's/^global_batch_size = .*/global_batch_size = 4/' "$work/job.toml"

# start RANKS FOLDER [FLAG...]: prints the exit code; the log is FOLDER.log
start() { ranks "$1" gpu "$tessera" train "$work/job.toml" --job.dump_folder "$work/$2" "${@:3}" >>"$work/$2.log" 2>&1; echo $?; }
losses() { sed -n 's/.*"loss": *\([0-9.]*\),.*/\1/p' "$work/$1/metrics.jsonl" | tr '\n' ' '; }
figures() { grep -o '"loss": *[0-9.e+-]*\|"grad_norm": *[0-9.e+-]*' "$work/$1/metrics.jsonl" | tr '\n' ' '; }
# The largest relative difference of two runs' losses, and how many there are of each.
apart() {
  paste <(losses "$1" | tr ' ' '\n') <(losses "$2" | tr ' ' '\n') |
    awk 'NF == 2 {d = ($1 - $2) / $1; d = d < 0 ? -d : d; if (d > most) most = d; n++} NF == 1 {bad = 1} END {print bad ? 1 : most + 0, n + 0}'
}
mixture() { sed -i 's/"llama"/"qwen3_moe", "moe_intermediate_size": 64, "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": true/' "$work/config.json"; }
# near WHAT RUN RUN STEPS [DISTANCE]
near() { check "$1" "$(apart "$2" "$3" | awk -v steps="$4" -v most="${5-1e-5}" '{print ($1 <= most && $2 == steps) ? "yes" : $0}')" yes; }

case $case in
  train | mixture)
    [ $case = train ] || mixture
    type=float32 distance=1e-5
    [[ $case != mixture || " ${*:4} " != *" --compile.enable "* ]] || type=bfloat16 distance=1e-2  # in float32 the host waits for experts
    set -- "$@" --training.mixed_precision_param $type
    check "3 steps on $3 ranks" "$(start "$3" run --training.steps 3 "${@:4}")" 0
    check "on a GPU" "$(grep -c 'on cuda:' "$work/run.log")" 1
    axes=$(grep -oE '(pipeline_parallel|data_parallel_shard|context_parallel|tensor_parallel)_degree' <<<"${*:4}" | wc -l)
    check "it says for whom the GPUs wait" "$(grep -oE 'waiting in (pp|dp_shard|cp|tp)( +[0-9.]+){3}' "$work/run.log" | awk '$6 > 0' | wc -l)" "$axes"
    [[ " ${*:4} " != *" --compile.enable "* ]] || check "steps are graphs" "$(grep -c 'steps are no CUDA graphs' "$work/run.log")" 0
    [[ " ${*:4} " != *"tensor_parallel"*" --compile.enable "* ]] || check "waits of graphs among them" "$(graphs_waited run)" yes
    check "one rank by itself" "$(start 1 one --training.steps 3 --training.mixed_precision_param $type)" 0
    near "the same losses" run one 3 $distance
    ;;
  resume | async)
    flags=(); [ $case = resume ] || flags=(--checkpoint.async_mode async)
    check "4 steps" "$(start 1 whole --training.steps 4)" 0
    check "2 steps" "$(start 1 parts --training.steps 2 "${flags[@]}")" 0
    check "2 more" "$(start 1 parts --training.steps 4 "${flags[@]}")" 0
    check "they were resumed" "$(grep -c 'resumed after step 2' "$work/parts.log")" 1
    near "the same losses" whole parts 4
    ;;
  rewind)
    check "4 steps with a gradient of NaN" "$(start 1 run --training.steps 4 --optimizer.on_nonfinite rewind --debug.inject_faults 3:nan:0)" 0
    check "it went back" "$(grep -c 'rewound to step 2' "$work/run.log")" 1
    check "4 losses" "$(losses run | wc -w)" 4
    ;;
  killed)
    began=$SECONDS
    code=$(start 1 run --training.steps 4 --debug.inject_faults 3:die:0)
    check "a rank that dies ends the job" "$([ "$code" != 0 ] && echo yes)" yes
    echo "@ exit code: $code"
    echo "@ time: $((SECONDS - began)) s"
    check "the next start" "$(start 1 run --training.steps 4)" 0
    check "resumes" "$(grep -c 'resumed after step 2' "$work/run.log")" 1
    ;;
  memory)
    # A share of the GPU's memory that the allocator keeps to; the check before the run sees all of it.
    share=0.00017; [ "$device" = cuda ] || share=0.0002
    began=$SECONDS
    check "ends with code 3" "$(PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:$share start 1 run --training.steps 2)" 3
    check "and in words" "$(grep -ciE 'out of memory|needs at least' "$work/run.log" | sed 's/^[1-9].*/yes/')" yes
    echo "@ time: $((SECONDS - began)) s"
    ;;
  deterministic)
    for model in llama mixture; do
      [ $model = llama ] || mixture
      for time in first second; do
        check "$model, the $time time" "$(start 1 $model.$time --training.steps 3 --training.mixed_precision_param bfloat16 --debug.deterministic)" 0
      done
      check "$model: equal losses and norms" "$(figures $model.first)" "$(figures $model.second)"
    done
    ;;
  *) echo "no such case: $case" >&2; exit 2 ;;
esac
finish
