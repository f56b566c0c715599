// SPDX-License-Identifier: Apache-2.0
#include "connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "names.hpp"

namespace tessera::sim::nccl {
namespace {

/// NCCL's own variable; here it is about transfers, too.
bool connects_at_first_use() {
  const char* set = std::getenv("NCCL_RUNTIME_CONNECT");
  return !set || std::string_view(set) != "0";
}

bool is_at(const Communicator& c, int rank, int end, std::uint32_t what) {
  return (c.slot(rank).connecting[static_cast<std::size_t>(end)].load() & what) != 0;
}

/// False: this rank had come before.
bool come(const Communicator& c, int end, std::uint32_t what) {
  const std::uint32_t before = c.mine().connecting[static_cast<std::size_t>(end)].fetch_or(what);
  return (before & what) == 0;
}

/// What an operation waits for: all members in a collective, or the peer's other end.
struct Connection {
  explicit Connection(const Operation& o)
      : c(*o.communicator),
        all(!transfers(o.kind)),
        end(all ? c.rank() : o.peer),
        mine(all                    ? kCollective
             : o.kind == Kind::send ? kSend
                                    : kReceive),
        theirs(o.kind == Kind::send ? kReceive : kSend) {}

  bool begin() const {
    if (!come(c, end, mine)) return false;
    if (all)
      c.ring_all();
    else
      c.ring(end);
    return true;
  }
  bool is_there() const {
    if (!all) return is_at(c, end, c.rank(), theirs);
    for (int r = 0; r < c.size(); ++r)
      if (!is_at(c, r, r, mine)) return false;
    return true;
  }

  static constexpr std::uint32_t kCollective = 1, kSend = 2, kReceive = 4;
  Communicator& c;
  bool all;
  int end;
  std::uint32_t mine, theirs;
};

}  // namespace

ncclResult_t connect(const std::vector<Operation>& operations) {
  if (!connects_at_first_use()) return ncclSuccess;
  std::vector<Connection> fresh;
  for (const Operation& o : operations)
    if (const Connection connection(o); connection.begin()) fresh.push_back(connection);
  for (const Connection& connection : fresh) {
    Communicator& c = connection.c;
    // A member that aborts closes its sockets.
    c.await([&] { return connection.is_there() || c.segment().aborted > 0; });
    if (connection.is_there()) continue;
    if (!c.stopped()) c.fail(ncclRemoteError, fmt::format("a member has aborted {}", c.place()));
    return c.state() == ncclSuccess ? ncclInternalError : c.state();
  }
  return ncclSuccess;
}

}  // namespace tessera::sim::nccl
