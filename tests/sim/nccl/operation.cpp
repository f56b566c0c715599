// SPDX-License-Identifier: Apache-2.0
#include "operation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "names.hpp"
#include "reduction.hpp"
#include "sim/sim.hpp"
#include "windows.hpp"

namespace tessera::sim::nccl {
namespace {

struct Range {
  const std::byte* first;
  const std::byte* last;
  bool writes;
  const Operation* operation;
};

Range range(const Operation& o, const void* data, std::size_t bytes, bool writes) {
  const auto* first = static_cast<const std::byte*>(data);
  return {first, first + bytes, writes, &o};
}

bool overlap(const Range& a, const Range& b) { return a.first < b.last && b.first < a.last; }

ncclResult_t refuse(const Operation& o, ncclResult_t result, const std::string& why) {
  const std::string text =
      fmt::format("{}: {}: {}", o.communicator->place(), describe(o.call()), why);
  if (o.communicator->blocking())
    tell(text);
  else
    o.communicator->fail(result, text);
  return result;
}

ncclResult_t check_pointer(const Operation& o, const char* which, const void* data,
                           std::size_t bytes) {
  if (bytes == 0) return ncclSuccess;
  if (!data) return refuse(o, ncclInvalidArgument, fmt::format("the {} pointer is null", which));
  cudaPointerAttributes about{};
  const cudaError_t asked = cudaPointerGetAttributes(&about, data);
  const auto* last = static_cast<const std::byte*>(data) + bytes - 1;
  if (asked != cudaSuccess || about.type != cudaMemoryTypeDevice || !is_device_pointer(last))
    return refuse(
        o, ncclInvalidArgument,
        fmt::format("the {} pointer {} with {} bytes is not device memory", which, data, bytes));
  if (about.device != o.communicator->device())
    return refuse(
        o, ncclInvalidArgument,
        fmt::format("the {} pointer {} is memory of device {}, the communicator uses device {}",
                    which, data, about.device, o.communicator->device()));
  return ncclSuccess;
}

/// Where the output may lie inside the input, or the input inside the output.
bool is_in_place(const Operation& o) {
  const auto* in = static_cast<const std::byte*>(o.in);
  const auto* out = static_cast<const std::byte*>(o.out);
  const auto rank = static_cast<std::size_t>(o.communicator->rank());
  switch (o.kind) {
    case Kind::all_reduce:
    case Kind::broadcast:
      return in == out;
    case Kind::all_gather:
      return in == out + rank * o.in_bytes();
    case Kind::reduce_scatter:
      return out == in + rank * o.out_bytes();
    default:
      return false;
  }
}

ncclResult_t check_overlap(const Operation& o) {
  const Range in = range(o, o.in, o.in_bytes(), false), out = range(o, o.out, o.out_bytes(), true);
  if (!overlap(in, out) || is_in_place(o)) return ncclSuccess;
  return refuse(o, ncclInvalidUsage,
                "input and output overlap, and not as NCCL's in-place form has it");
}

}  // namespace

std::size_t Operation::in_bytes() const {
  const auto size = static_cast<std::size_t>(communicator->size());
  const std::size_t bytes = count * size_of(type);
  if (kind == Kind::recv || (kind == Kind::broadcast && peer != communicator->rank())) return 0;
  return kind == Kind::reduce_scatter || kind == Kind::all_to_all ? bytes * size : bytes;
}

std::size_t Operation::out_bytes() const {
  const auto size = static_cast<std::size_t>(communicator->size());
  const std::size_t bytes = count * size_of(type);
  if (kind == Kind::send) return 0;
  return kind == Kind::all_gather || kind == Kind::all_to_all ? bytes * size : bytes;
}

Call Operation::call() const {
  return {kind,
          type,
          op,
          peer,
          count,
          number,
          offset_of(in),
          offset_of(out),
          offset_in_window(*communicator, in, in_bytes()),
          offset_in_window(*communicator, out, out_bytes())};
}

std::string Operation::title() const { return fmt::format("{} {}", name_of(kind), number); }

ncclResult_t check(const Operation& o) {
  const int size = o.communicator->size();
  if (size_of(o.type) == 0)
    return refuse(o, ncclInvalidArgument,
                  fmt::format("there is no type {}", static_cast<int>(o.type)));
  if (o.op < 0 || o.op >= ncclNumOps)
    return refuse(o, ncclInvalidArgument,
                  fmt::format("there is no operation {}", static_cast<int>(o.op)));
  if (reduces(o.kind) && !can_reduce(o.type))
    return refuse(o, ncclInvalidUsage, "the simulated NCCL does not reduce this type");
  const bool has_peer = transfers(o.kind) || o.kind == Kind::broadcast;
  if (has_peer && (o.peer < 0 || o.peer >= size))
    return refuse(o, ncclInvalidArgument, fmt::format("there is no rank {}", o.peer));
  if (const auto in = check_pointer(o, "input", o.in, o.in_bytes()); in != ncclSuccess) return in;
  if (const auto out = check_pointer(o, "output", o.out, o.out_bytes()); out != ncclSuccess)
    return out;
  return check_overlap(o);
}

ncclResult_t check_together(const std::vector<Operation>& operations) {
  std::vector<Range> ranges;
  for (const Operation& o : operations) {
    if (o.in_bytes() > 0) ranges.push_back(range(o, o.in, o.in_bytes(), false));
    if (o.out_bytes() > 0) ranges.push_back(range(o, o.out, o.out_bytes(), true));
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < ranges.size(); ++i)
    for (std::size_t j = i + 1; j < ranges.size() && overlap(ranges[i], ranges[j]); ++j)
      if ((ranges[i].writes || ranges[j].writes) && ranges[i].operation != ranges[j].operation)
        return refuse(*ranges[i].operation, ncclInvalidUsage,
                      fmt::format("overlaps the memory of {} in the same group",
                                  describe(ranges[j].operation->call())));
  return ncclSuccess;
}

}  // namespace tessera::sim::nccl
