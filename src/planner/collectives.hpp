// SPDX-License-Identifier: Apache-2.0
// Seconds of collectives by topology: domains of NVLink, and a share of the network for each GPU.
//
// All rings of a domain share its network cards: what enters a domain of `local` ranks is spread
// over `local` cards (NCCL's rail-aligned rings). The cost of a ring is that of Thakur,
// Rabenseifner and Gropp, https://doi.org/10.1177/1094342005051521; NCCL's trees are those of
// Sanders, Speck and Traeff, https://doi.org/10.1016/j.parco.2009.09.001.
#pragma once

#include "tessera/planner/machine.hpp"

namespace tessera::planner {

struct Group {
  int ranks = 1;
  int local = 1;  ///< of them in one domain

  int domains() const { return (ranks + local - 1) / local; }
};

/// `stride`: distance of neighbours in the numbering of all GPUs.
Group group_of(const Machine& machine, int ranks, int stride);

/// Do ranks take turns on a core?
bool share_cores(const Machine& machine);
/// Where they do: more of a call that ranks must enter before one continues. The
/// core has run each of its ranks once by then, however many enter the call.
double turn_seconds(const Machine& machine);

/// all_gather to, or reduce_scatter of, `bytes` on every rank.
double gather_seconds(const Machine& machine, double bytes, const Group& group);
/// A ring, or a tree of the domains if that is faster: its latency grows with their logarithm.
double all_reduce_seconds(const Machine& machine, double bytes, const Group& group);
/// all_to_all in which every rank sends `sent_bytes`, spread evenly. `kept_between`: share of the
/// bytes between domains that is left when a token goes to each domain once.
double exchange_seconds(const Machine& machine, double sent_bytes, const Group& group,
                        double kept_between = 1);
/// One message of each rank of the group to the next. All wait for those between domains.
double send_seconds(const Machine& machine, double bytes, const Group& group);

}  // namespace tessera::planner
