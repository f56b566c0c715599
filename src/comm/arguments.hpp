// SPDX-License-Identifier: Apache-2.0
// What every back end asks of its arguments: broken here, they are a bug of the caller.
#pragma once

#include <cstring>
#include <numeric>
#include <span>

#include "tessera/base/error.hpp"
#include "tessera/comm/buffer.hpp"
#include "tessera/comm/communicator.hpp"
#include "tessera/comm/hooks.hpp"

namespace tessera::comm {

inline void expect_memory(const Communicator& c, const Buffer& buffer, Memory memory) {
  TESSERA_EXPECT(buffer.memory == memory, "{} communicator of axis {} was given {} memory",
                 c.backend(), c.axis(), buffer.memory == Memory::host ? "host" : "device");
  TESSERA_EXPECT(buffer.count >= 0 && (buffer.data || buffer.count == 0),
                 "axis {} was given a buffer without memory", c.axis());
}

/// `out` holds `times` what `in` holds.
inline void expect_sizes(const Communicator& c, const Buffer& in, const Buffer& out,
                         std::int64_t times, std::int64_t per) {
  TESSERA_EXPECT(in.dtype == out.dtype, "axis {}: in is {}, out is {}", c.axis(), name_of(in.dtype),
                 name_of(out.dtype));
  TESSERA_EXPECT(in.count * times == out.count * per,
                 "axis {} of {} ranks: in has {} elements, out has {}", c.axis(), c.size(),
                 in.count, out.count);
}

inline void expect_no_group(const Communicator& c, bool open, Call call) {
  require(!open, ExitCode::communication,
          "{} was called inside a group on axis {}; end the group first", name_of(call), c.axis());
}
inline void expect_first_group(const Communicator& c, bool open) {
  require(!open, ExitCode::communication,
          "group_start() inside a group on axis {}; groups do not nest", c.axis());
}
inline void expect_group(const Communicator& c, bool open, std::string_view transfer) {
  require(open, ExitCode::communication,
          "{} outside of a group on axis {}; put it between group_start() and group_end()",
          transfer, c.axis());
}

inline void expect_peer(const Communicator& c, int peer) {
  TESSERA_EXPECT(peer >= 0 && peer < c.size(), "axis {} has {} ranks, rank {} was named", c.axis(),
                 c.size(), peer);
}

inline void expect_counts(const Communicator& c, const Buffer& buffer,
                          std::span<const std::int64_t> counts) {
  TESSERA_EXPECT(static_cast<int>(counts.size()) == c.size(),
                 "axis {} has {} ranks, {} counts were given", c.axis(), c.size(), counts.size());
  TESSERA_EXPECT(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == buffer.count,
                 "axis {}: the counts do not sum to the buffer's {} elements", c.axis(),
                 buffer.count);
}

/// Copies this rank's own part, unless it is in place.
inline void copy_part(const Buffer& from, const Buffer& to) {
  if (to.data != from.data && from.count > 0) std::memcpy(to.data, from.data, from.bytes());
}

}  // namespace tessera::comm
