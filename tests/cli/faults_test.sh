#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a run on two or four ranks does when numbers go wrong or a rank is lost, with faults on purpose (debug.inject_faults).
#   faults_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
job 4 2 <<J
[lr_scheduler]
warmup_steps = 2
[checkpoint]
enable = true
interval = 2
[debug]
deterministic = true
J
says() { grep -cE -- "$2" "$work/$1.log"; }
inject=--debug.inject_faults

ranks=2
check "an undisturbed run" "$(run whole)" 0
check "a step whose gradient is not a number is skipped" "$(run skip $inject 3:nan:1)" 0
check "which is said" "$(says skip 'step 3 skipped: .*not finite.*[(]rank 1[)]')" 1
check "its batch is kept" "$(ls "$work/skip/faults/step-00000003")" "batch.safetensors
fault.json"
check "the batch can be replayed" "$(run replay --training.dataset_path "$work/skip/faults/step-00000003/batch.safetensors" --training.steps 1)" 0
check "no other step is" "$(steps skip)" "1 2 3 4 5 6 7 8 "
# A replica's own sums of squares are not in the norm.
replicas="--parallelism.data_parallel_replicate_degree 2 --parallelism.pipeline_parallel_degree 1"
for how in deterministic no_deterministic; do
  # shellcheck disable=SC2086
  check "a replica's damaged gradient is noticed ($how)" "$(ranks=4 run "$how" $inject 3:nan:3 --debug.$how $replicas)" 0
  check "in its step" "$(says "$how" 'step 3 skipped: .*not finite.*[(]rank 3[)]')" 1
done
check "a fault that does not happen is no error" "$(run early $inject 4:skip:1:99999)" 0
check "but is said" "$(says early 'the fault of rank 1 in step 4 did not happen')" 1
check "stop ends with 6" "$(run stop $inject 5:nan:1 --optimizer.on_nonfinite stop)" 6
check "in one message that names step and rank" "$(says stop '^tessera: step 5: .*[(]rank 1[)]')" 1
check "the same command without the fault goes on" "$(run stop)" 0
check "with the bits of the undisturbed run" "$(weights stop)" "$(weights whole)"
check "and no skipped step" "$(tail -n 1 "$work/stop/metrics.jsonl" | grep -c '"skipped_steps": *0')" 1
check "rewind goes back" "$(run back $inject 6:nan:0 --optimizer.on_nonfinite rewind)" 0
check "to the last checkpoint and behind the batch" "$(says back 'rewound to step 4; training continues with sample 48')" 1
check "every step is once in metrics.jsonl" "$(steps back)" "1 2 3 4 5 6 7 8 "
check "a resumed run reads on behind it" "$(run back --training.steps 10)$(says back 'resumed after step 8')" 01
check "without checkpoints there is nothing to go back to" "$(run back2 $inject 2:nan:0 --optimizer.on_nonfinite rewind --checkpoint.no_enable)" 6
# What is wrong with the parameters after step 17 shows in the loss of step 18.
jump="--training.steps 18 --optimizer.spike_zscore 10 $inject 17:spike:1"
check "a loss that jumps is noticed" "$(run spike $jump)$(says spike 'step 18.*standard deviations above the recent losses')" 01
check "and gone back from" "$(run spike2 $jump --optimizer.on_spike rewind)" 0
check "to the last checkpoint and behind the batch" "$(says spike2 'rewound to step 16; training continues with sample 144')" 1
more_spikes() { # the host alone looks at losses
  check "a resumed run knows the losses before" "$(run spike3 --training.steps 17 --optimizer.spike_zscore 10)$(run spike3 --training.steps 19 --optimizer.spike_zscore 10 $inject 18:spike:1)$(says spike3 'step 19.*standard deviations above the recent losses')" 001
  zscores() { grep -o '"loss_zscore": *[-0-9.e+]*' "$work/$1/metrics.jsonl" | tail -n 2; }
  spikes="--optimizer.spike_zscore 1000 --lr_scheduler.total_steps 20"
  check "but not those of skipped steps" "$(run skips --training.steps 20 $spikes $inject 5:nan:1)$(run skips2 --training.steps 18 $spikes $inject 5:nan:1)$(run skips2 --training.steps 20 $spikes)" 000
  check "for the same deviations" "$(zscores skips2)" "$(zscores skips)"
  check "which are there" "$(zscores skips | grep -c loss_zscore)" 2
  check "no other loss is a spike" "$(run calm --training.steps 18 --optimizer.spike_zscore 10)$(says calm 'standard deviations')" 00
}
[ -n "${TESSERA_SIM_PRELOAD-}" ] || more_spikes
ranks=4
replicas="--parallelism.data_parallel_replicate_degree 4 --parallelism.data_parallel_shard_degree 1"
check "equal replicas go through" "$(run equal $replicas --debug.check_replicas 2)" 0
check "a wrong bit ends the run with 3" "$(run flip $replicas --debug.check_replicas 2 $inject 3:flip:2)" 3
check "and the rank is named" "$(says flip 'after step 4: parameters of .* on rank 2 differ from those of its replicas[.]')" 1
check "a rank that dies ends the others" "$(run dead $inject 3:die:1 | sed 's/^[1-9].*/not 0/')" "not 0"
check "in less than a minute" $(($(since_last_step dead) < 60)) 1 # 10 s where nobody else computes
check "a rank that freezes is noticed" "$(run frozen $inject 3:freeze:3 --comm.train_timeout_seconds 4)" 7
check "memory that is used up while others wait ends the run with 3" "$(run memory --parallelism.pipeline_parallel_degree 2 $inject 3:memory:2:9 --comm.train_timeout_seconds 300)" 3
check "the rank says why" "$(says memory '^tessera: rank 2 on .*: out of memory( on this GPU .*)?: could not allocate (1048576[.]0 GiB|1[.]00 PiB)')" 1
check "in less than a minute" $(($(since_last_step memory) < 60)) 1 # 6 s where nobody else computes
check "a wrong entry" "$(run wrong $inject 3:nun:1)" 2
check "a rank that is not there" "$(run wrong2 $inject 3:nan:4)" 2
check "no process is left" "$(pgrep -fc -- "--job.dump_folder $work/")" 0
finish
