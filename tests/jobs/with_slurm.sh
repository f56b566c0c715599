#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command inside a Slurm of its own on this machine, and ends that Slurm with all that ran in it:
#   with_slurm.sh NODES CPUS COMMAND [ARG...]
# NODES pretended nodes (node1 ...) of CPUS processors each, more than the machine has if you like; no root needed. COMMAND sees
# SLURM_CONF and SLURM_TEST_DIR (a scratch folder of the cluster). SLURM_TEST_CONF: more lines of slurm.conf. Its exit code comes back;
# 2 if Slurm is not installed.
set -euo pipefail
umask 022
[ $# -ge 3 ] || { echo "usage: with_slurm.sh NODES CPUS COMMAND [ARG...]" >&2; exit 2; }
nodes=$1 cpus=$2; shift 2
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd srun scontrol; do
  command -v $program >/dev/null || { echo "with_slurm: $program is not installed (./bootstrap deps installs it)"; exit 2; }
done

dir=$(mktemp -d /tmp/slurm.XXXXXX) # sockets live in it: its name must be short
chmod 755 "$dir"
mkdir "$dir/state" "$dir/log" "$dir/shm"
export SLURM_CONF=$dir/slurm.conf SLURM_TEST_DIR=$dir
daemons=()

# Every process of this cluster carries SLURM_TEST_DIR; slurmstepd, which blanks its environment, ends with its tasks.
marked() { grep -lszFx "SLURM_TEST_DIR=$dir" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3 | grep -vx -e $$ -e "$BASHPID" || true; }

finish() {
  local rc=$? process round
  trap - EXIT INT TERM; set +e
  [ $rc = 0 ] || tail -n 4 "$dir"/log/*.log >&2
  timeout 10 scancel --quiet --full --user="$(id -un)" >/dev/null 2>&1
  for round in {1..50}; do [ -n "$(timeout 5 squeue -h 2>/dev/null)" ] || break; sleep 0.1; done
  kill "${daemons[@]}" 2>/dev/null
  for round in TERM TERM KILL; do
    sleep 0.3
    for process in $(marked); do kill -$round "$process" 2>/dev/null; done
  done
  rm -rf "$dir" /dev/shm/"$(basename "$dir")"
  exit $rc
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
free_block() { # prints the first of $1 consecutive free ports below the ephemeral range
  local try first port
  for try in {1..50}; do
    first=$((12000 + (RANDOM + $$ + try) % 18000))
    for ((port = first; port < first + $1; port++)); do is_free $port || continue 2; done
    echo $first; return
  done
  echo "with_slurm: no free ports" >&2; return 1
}
port=$(free_block $((nodes + 1)))
host=$(hostname -s)

# Tasks of all pretended nodes share one host name, after which Open MPI names its shared memory: with several nodes it must not use it.
mkdir "/dev/shm/$(basename "$dir")"
task_environment=("OMPI_MCA_btl_vader_backing_directory=/dev/shm/$(basename "$dir")" OMPI_MCA_mpi_yield_when_idle=1)
[ "$nodes" = 1 ] || task_environment+=('OMPI_MCA_btl=self,tcp' OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo)
{ echo '#!/bin/sh'; printf 'echo export %s\n' "${task_environment[@]}"; } >"$dir/taskprolog"
chmod 755 "$dir/taskprolog"
echo 'CgroupPlugin=cgroup/v1' >"$dir/cgroup.conf" # not used, but the default one wants a /sys/fs/cgroup
{
  cat <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$dir/munge.sock,cred_expire=10
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
TmpFS=$dir/tmp.%n
SlurmctldPidFile=$dir/state/slurmctld.pid
SlurmdPidFile=$dir/state/slurmd.%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
TaskProlog=$dir/taskprolog
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=pmix
MailProg=/bin/true
SchedulerParameters=sched_interval=1,bf_interval=1
KillWait=5
BatchStartTimeout=60
ReturnToService=2
CONF
  for ((n = 1; n <= nodes; n++)); do
    echo "NodeName=node$n NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + n)) CPUs=$cpus RealMemory=1000"
  done
  printf '%s\n' "${SLURM_TEST_CONF:-}"
  echo "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP"
} >"$dir/slurm.conf"

start() { # NAME PROGRAM...
  setsid "${@:2}" </dev/null >"$dir/log/$1.log" 2>&1 &
  daemons+=($!)
}
(umask 077; head -c 128 /dev/urandom >"$dir/munge.key")
start munged munged --foreground --force --key-file="$dir/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" \
  --log-file="$dir/log/munged.out" --seed-file="$dir/munge.seed"
for _ in {1..600}; do [ ! -S "$dir/munge.sock" ] || break; sleep 0.05; done
start controller slurmctld -D
for ((n = 1; n <= nodes; n++)); do
  mkdir "$dir/spool.node$n"
  mkdir -m 1777 "$dir/tmp.node$n" # Slurm's PMIx plugin keeps its sockets there
  start "daemon$n" slurmd -D -N "node$n"
done
for _ in {1..600}; do
  ready=$(timeout 5 sinfo -h -N -o %T 2>/dev/null | grep -cx idle || true)
  [ "$ready" != "$nodes" ] || break
  sleep 0.2
done
[ "$ready" = "$nodes" ] || { echo "with_slurm: $ready of $nodes nodes came up" >&2; exit 1; }

"$@"
