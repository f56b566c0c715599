#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Stands for ssh where mpirun starts its daemon on a node: the node is this machine under the name HOST.
#   pretended_node.sh HOST COMMAND...
host=$1; shift
[ "$(id -u)" = 0 ] && exec unshare --uts sh -c "hostname $host; $*"
exec unshare --user --map-root-user --uts sh -c "hostname $host; $*"
