// SPDX-License-Identifier: Apache-2.0
#include "accesses.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "block.hpp"
#include "sim/sim.hpp"

namespace tessera::sim {
namespace {

struct Step {
  std::int64_t count, stride;
};

/// The offset from the begin of the last step that begins at or before it.
std::int64_t in_step(std::int64_t offset, const Step& step) {
  if (step.count <= 1 || step.stride <= 0) return offset;
  return offset - std::min(offset / step.stride, step.count - 1) * step.stride;
}

std::string describe(const void* address, std::size_t bytes, bool writes,
                     const std::vector<Operand>& operands) {
  std::string text = fmt::format("{} {} bytes at {} outside of its operands",
                                 writes ? "writes" : "reads", bytes, fmt::ptr(address));
  for (std::size_t i = 0; i < operands.size(); ++i)
    text += fmt::format("; operand {}: {} + {} x {} x {} bytes{}", i, fmt::ptr(operands[i].data),
                        operands[i].groups, operands[i].rows, operands[i].bytes,
                        operands[i].written ? " written" : "");
  return text;
}

}  // namespace

bool covers(const Operand& operand, const void* address, std::size_t bytes) {
  auto offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address) -
                                          reinterpret_cast<std::uintptr_t>(operand.data));
  if (operand.data == nullptr || offset < 0 || operand.rows == 0 || operand.groups == 0)
    return false;
  Step rows{operand.rows, operand.row_stride}, groups{operand.groups, operand.group_stride};
  if (rows.stride > groups.stride)
    std::swap(rows, groups);  // the longer step first, so that none is ambiguous
  offset = in_step(in_step(offset, groups), rows);
  return offset + static_cast<std::int64_t>(bytes) <= operand.bytes;
}

KernelAccesses::KernelAccesses(std::string kernel, std::vector<Operand> operands)
    : kernel_(std::move(kernel)), operands_(std::move(operands)) {
  const Arena memory = arena();
  device_begin_ = reinterpret_cast<const unsigned char*>(memory.base);
  device_end_ = device_begin_ + memory.bytes;
}

void KernelAccesses::shared_memory(std::span<unsigned char> memory, std::size_t guard) {
  shared_ = memory;
  guard_ = guard;
  shadows_.assign((memory.size() + kWord - 1) / kWord, {});
}

void KernelAccesses::report(const std::string& text) {
  if (fault_.empty())
    fault_ = fmt::format("kernel {}, block {}, thread {}: {}", kernel_, block_, thread_, text);
}

void KernelAccesses::access(const void* address, std::size_t bytes, bool writes, bool atomic) {
  const auto* const at = static_cast<const unsigned char*>(address);
  if (at >= device_begin_ && at < device_end_)
    check_global(at, bytes, writes);
  else if (at + guard_ >= shared_.data() && at < shared_.data() + shared_.size() + guard_)
    check_shared(at, bytes, writes, atomic);
}

void KernelAccesses::check_global(const unsigned char* address, std::size_t bytes, bool writes) {
  const auto fits = [&](const Operand& operand) {
    return (operand.written || !writes) && covers(operand, address, bytes);
  };
  if (fault_.empty() && std::none_of(operands_.begin(), operands_.end(), fits))
    report(describe(address, bytes, writes, operands_));
}

bool KernelAccesses::races(const Shadow& word, bool writes, bool atomic) const {
  const bool with_write =
      word.written == interval_ && word.writer != thread_ && !(atomic && word.atomic);
  return with_write || (writes && word.read == interval_ && word.reader != thread_);
}

void KernelAccesses::report_race(std::size_t word, bool writes) {
  const Shadow& shadow = shadows_[word];
  std::string other = fmt::format("which thread {} writes", shadow.writer);
  if (shadow.written != interval_ || shadow.writer == thread_)
    other = shadow.reader == kSeveral ? "which several threads read"
                                      : fmt::format("which thread {} reads", shadow.reader);
  report(fmt::format("{} byte {} of shared memory, {}, and no __syncthreads is between",
                     writes ? "writes" : "reads", word * kWord, other));
}

void KernelAccesses::remember(Shadow& word, bool writes, bool atomic) const {
  if (writes) {
    word.written = interval_;
    word.writer = thread_;
    word.atomic = atomic;
    return;
  }
  word.reader = word.read == interval_ && word.reader != thread_ ? kSeveral : thread_;
  word.read = interval_;
}

void KernelAccesses::check_shared(const unsigned char* address, std::size_t bytes, bool writes,
                                  bool atomic) {
  if (address < shared_.data() || address + bytes > shared_.data() + shared_.size())
    return report(fmt::format("{} byte {} of {} bytes of shared memory",
                              writes ? "writes" : "reads", address - shared_.data(),
                              shared_.size()));
  const auto first = static_cast<std::size_t>(address - shared_.data());
  for (std::size_t word = first / kWord; word <= (first + bytes - 1) / kWord; ++word) {
    if (races(shadows_[word], writes, atomic)) report_race(word, writes);
    remember(shadows_[word], writes, atomic);
  }
}

}  // namespace tessera::sim

#pragma GCC visibility push( \
    hidden)  // a sanitizer's runtime, where there is one, has functions of the same names

// What -fsanitize=thread calls. Threads of a kernel are fibers of one thread: only the place and
// the size count.
namespace {

void check(const void* address, std::size_t bytes, bool writes) {
  if (auto* const block = tessera::sim::running_block)
    block->accesses().access(address, bytes, writes, false);
}

}  // namespace

#define TESSERA_ACCESS(bytes)                                                        \
  void __tsan_read##bytes(void* address) { check(address, bytes, false); }           \
  void __tsan_write##bytes(void* address) { check(address, bytes, true); }           \
  void __tsan_unaligned_read##bytes(void* address) { check(address, bytes, false); } \
  void __tsan_unaligned_write##bytes(void* address) { check(address, bytes, true); }

extern "C" {
TESSERA_ACCESS(1)
TESSERA_ACCESS(2)
TESSERA_ACCESS(4)
TESSERA_ACCESS(8)
TESSERA_ACCESS(16)
void __tsan_read_range(void* address, unsigned long bytes) { check(address, bytes, false); }
void __tsan_write_range(void* address, unsigned long bytes) { check(address, bytes, true); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
}
#pragma GCC visibility pop
