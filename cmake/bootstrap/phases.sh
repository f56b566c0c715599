# SPDX-License-Identifier: Apache-2.0
# How ./bootstrap shows its work: the plan, a bar or plain lines while a phase runs, its seconds at the end. Sourced, not run.
# It needs $verb and $log (a folder for logs). Children do not inherit file descriptor 9, the lock of bootstrap.

say() { printf 'bootstrap: %s\n' "$*"; }
die() { local code=$1; shift; printf 'bootstrap: %s\n' "$*" >&2; exit "$code"; }

duration() { # SECONDS: 42 s, 3 min 05 s
  if (($1 < 60)); then printf '%d s' "$1"; else printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); fi
}

processor() { sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1; }

# --- The plan -------------------------------------------------------------------------------------------------------------
plan_names=() plan_seconds=() plan_megabytes=()

plan() { # NAME SECONDS MEGABYTES: a phase with its estimates; 0 seconds: it is up to date
  (($2 > 0)) || return 0
  plan_names+=("$1") plan_seconds+=("$2") plan_megabytes+=("$3")
}

sum() { local total=0 term; for term in "$@"; do total=$((total + term)); done; echo $total; }

show_plan() { # FOLDER: the disk whose free space counts
  local i space available needed
  needed=$(sum ${plan_megabytes[@]+"${plan_megabytes[@]}"}) available=$(df --output=avail -BM "$1" | tail -n 1 | tr -dc 0-9)
  say "'$verb' takes about $(duration "$(sum ${plan_seconds[@]+"${plan_seconds[@]}"})") and $needed MB of disk ($available MB are free)"
  say "on $(nproc) processors ($(processor)); logs: $log"
  for i in ${plan_names[@]+"${!plan_names[@]}"}; do
    space=''; ((plan_megabytes[i] == 0)) || space="${plan_megabytes[i]} MB"
    printf '  %d. %-44s about %-12s %s\n' $((i + 1)) "${plan_names[i]}" "$(duration "${plan_seconds[i]}")" "$space"
  done
  ((available >= needed)) || die 3 "the disk of $1 has $available MB free, and $needed MB are needed; free some, or set TESSERA_CACHE to a folder on another disk"
}

# --- Phases ---------------------------------------------------------------------------------------------------------------
phase_name='' phase_start=0 phase_names=() phase_seconds=()

begin() { # NAME
  phase_name=$1 phase_start=$SECONDS
  say "$1"
}

finish() { # closes the phase that `begin` opened, and keeps its seconds in $log/phases.tsv
  local seconds=$((SECONDS - phase_start))
  phase_names+=("$phase_name") phase_seconds+=($seconds)
  printf '  done in %s\n' "$(duration $seconds)"
  printf '%s\t%s\t%s\t%s\n' "$(date +%FT%T)" "$verb" "$phase_name" $seconds >>"$log/phases.tsv"
}

show_phases() { # one line each
  local i
  say "the phases took $(duration "$(sum ${phase_seconds[@]+"${phase_seconds[@]}"})"):"
  for i in ${phase_names[@]+"${!phase_names[@]}"}; do
    printf '  %12s  %.84s\n' "$(duration "${phase_seconds[i]}")" "${phase_names[i]}"
  done
}

# --- Progress ---------------------------------------------------------------------------------------------------------------
child='' tick=10 # seconds between two lines where there is no terminal

# Started in a process group of its own, such that Ctrl-C reaches bootstrap alone, which then ends the whole group.
interrupted() {
  trap '' INT TERM  # a second signal must not end this before the child is told
  [ -z "$child" ] || kill -TERM -- "-$child" 2>/dev/null || true
  printf '\n' >&2
  die 130 "interrupted${phase_name:+ in: $phase_name}; run the same command to resume there"
}
trap interrupted INT TERM

progress() { # DONE TOTAL UNIT SECONDS: one line of text
  local width=24 filled rate left=''
  if (($2 == 0)); then printf '%s %s, %s' "$1" "$3" "$(duration "$4")"; return; fi
  filled=$(($1 * width / $2)) rate=$(($1 * 10 / ($4 > 0 ? $4 : 1)))
  (($1 == 0)) || left=", $(duration $(($4 * ($2 - $1) / $1))) left"
  printf '[%-*s] %d of %d %s, %d.%d/s%s' $width "$(printf '%*s' $filled '' | tr ' ' '#')" "$1" "$2" "$3" $((rate / 10)) $((rate % 10)) "$left"
}

# Runs COMMAND with its output in $log/NAME.log. COUNTER, a function of the log's path, prints "DONE TOTAL UNIT" (a total of 0:
# not known). On a terminal a bar is drawn, else a line is written every $tick seconds. A failure shows the end of the log.
shown() { # NAME COUNTER COMMAND...
  local out=$log/$1.log counter=$2 start=$SECONDS said=$SECONDS rc=0 name=$1 numbers; shift 2
  set -m; "$@" >"$out" 2>&1 </dev/null 9>&- & child=$!; set +m
  while kill -0 $child 2>/dev/null; do
    sleep 0.25
    if [ -t 1 ]; then
      read -ra numbers < <($counter "$out") || true
      printf '\r\033[K  %.98s' "$(progress "${numbers[0]:-0}" "${numbers[1]:-0}" "${numbers[2]:-}" $((SECONDS - start)))"
    elif ((SECONDS - said >= tick)); then
      read -ra numbers < <($counter "$out") || true
      said=$SECONDS; printf '  %s\n' "$(progress "${numbers[0]:-0}" "${numbers[1]:-0}" "${numbers[2]:-}" $((SECONDS - start)))"
    fi
  done
  wait $child || rc=$?
  child=''
  [ ! -t 1 ] || printf '\r\033[K'
  [ $rc = 0 ] || { tail -n 40 "$out" >&2; printf 'bootstrap: failed (%s): %s; the full log is %s\n' $rc "$name" "$out" >&2; return 1; }
}

count_nothing() { echo 0 0 so_far; }
count_lines() { echo "$(wc -l <"$1") 0 lines"; }                                   # of the log
count_ninja() { sed -n 's/^\[\([0-9]*\)\/\([0-9]*\)\].*/\1 \2 files/p' "$1" | tail -n 1; }

# Passes the output of ctest through. Every $tick seconds it says how many of its WHATs are done, and after $tick seconds
# without output that it still runs.
ticking() { # WHAT
  local line pending='' ticks=0 start=$SECONDS said=$SECONDS numbers=(0 0)
  so_far() { progress "${numbers[@]}" "$1s" $((SECONDS - start)); }
  while true; do
    if IFS= read -r -t $tick line; then
      line=$pending$line pending='' ticks=0; printf '%s\n' "$line"
      [[ ! $line =~ ^\ *([0-9]+)/([0-9]+)\ Test ]] || numbers=("${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}")
      if ((numbers[1] > 0 && SECONDS - said >= tick)); then said=$SECONDS; printf '  %s\n' "$(so_far "$1")"; fi
    elif (($? > 128)); then
      pending+=$line; ticks=$((ticks + 1)); said=$SECONDS
      printf '  %s: %s since the last line; %s\n' "$1" "$(duration $((ticks * tick)))" "$(so_far "$1")"
    else printf '%s' "$pending$line"; break; fi
  done
}
