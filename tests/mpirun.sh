#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a test program on N ranks of this machine, and never longer than SECONDS.
#   mpirun.sh SECONDS N PROGRAM [ARG...]
# TESSERA_SIM_PRELOAD names a library that the ranks preload, and mpirun does not. They see as many simulated GPUs as there are ranks.
set -u
seconds=$1 ranks=$2; shift 2
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
[ -z "${TESSERA_SIM_PRELOAD-}" ] || set -- env TESSERA_SIM_DEVICES="${TESSERA_SIM_DEVICES-$ranks}" LD_PRELOAD="$TESSERA_SIM_PRELOAD" "$@"
exec timeout --kill-after=10 "$seconds" mpirun --bind-to none -n "$ranks" "$@"
