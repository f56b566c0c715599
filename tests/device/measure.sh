# SPDX-License-Identifier: Apache-2.0
# What the parts of first_hour.sh use: programs, ranks, and measurements that leave one line each in results.jsonl.

part=
results=$out/results.jsonl

# program NAME: its path; the name alone if it is nowhere, so that the measurement says so.
program() {
  local folder
  for folder in "${programs[@]}"; do [ ! -x "$folder/$1" ] || { echo "$folder/$1"; return; }; done
  echo "$1"
}

# record STATUS NAME EXIT SECONDS [LOG [COMMAND...]]
record() { python3 "$here/record.py" add "$results" "$part" "$device" "$@"; }

# measure NAME SECONDS COMMAND...: runs it, for no longer than SECONDS or what is left of the part. Lines of its output that
# begin with "@ " are values: "@ NAME: NUMBER UNIT". With --together, parts a to d run in the background.
measure() {
  [[ $1 =~ $only ]] || return 0
  if [ -n "$together" ] && [[ $part =~ [a-d] ]]; then measure_now "$@" & else measure_now "$@"; fi
}

measure_now() {
  local name=$1 limit=$2 left=$((part_seconds - (SECONDS - began))) start=$SECONDS log=$out/$1.log code
  shift 2
  if [ -z "$again" ] && python3 "$here/record.py" passed "$results" "$name"; then echo "done     $name"; return; fi
  if [ $left -lt 15 ]; then echo "no time  $name: call the part again"; return; fi
  [ "$limit" -le "$left" ] || limit=$left
  timeout --kill-after=10 "$limit" bash -c '"$@"' bash "$@" >"$log" 2>&1 </dev/null  # bash: "$1" may be a function of this script
  code=$?
  record ran "$name" $code $((SECONDS - start)) "$log" "$@"
}

# impossible NAME REASON: this machine cannot run it.
impossible() { [[ ! $1 =~ $only ]] || record impossible "$1" 0 0 "$2"; }

# alone LIBRARY PROGRAM...: one process, not started by mpirun; on the simulated GPU it preloads LIBRARY (gpu or comm).
alone() {
  local library=$1; shift
  if [ "$device" = sim ]; then env "LD_PRELOAD=$preloads/libtessera_sim_$library.so" "$@"; else "$@"; fi
}

# ranks N LIBRARY PROGRAM...: on N ranks, which on a real machine share its GPU.
ranks() {
  local n=$1 library=$2; shift 2
  if [ "$device" = sim ]; then
    TESSERA_SIM_PRELOAD=$preloads/libtessera_sim_$library.so "$root/tests/mpirun.sh" 520 "$n" "$@"
  elif [ "$n" = 1 ]; then
    "$root/tests/mpirun.sh" 520 1 "$@"
  else
    NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_NVLS_ENABLE=0 NCCL_MAX_CTAS=2 "$root/tests/mpirun.sh" 520 "$n" "$@"
  fi
}
preloads=$(dirname "$(program libtessera_sim_gpu.so)")
export -f alone ranks
export preloads

# The machine, once for each call: a line of its own.
facts() { python3 "$here/record.py" facts "$results" "$device" "$(program tessera)"; }
