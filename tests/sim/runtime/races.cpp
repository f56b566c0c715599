// SPDX-License-Identifier: Apache-2.0
#include "races.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>

namespace tessera::cudart {
namespace {

Bytes bytes_of(const sim::Access& access) {
  const auto begin = reinterpret_cast<std::uintptr_t>(access.data);
  return {begin, begin + access.bytes};
}

std::string hex(std::uintptr_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIxPTR, address);
  return text;
}

}  // namespace

void Blocks::add(Bytes bytes) {
  forget(bytes);
  ends_[bytes.begin] = bytes.end;
}

void Blocks::forget(Bytes bytes) {
  auto first = ends_.lower_bound(bytes.begin);
  if (first != ends_.begin() && std::prev(first)->second > bytes.begin) --first;
  ends_.erase(first, ends_.lower_bound(bytes.end));
}

std::optional<Bytes> Blocks::find(std::uintptr_t address) const {
  const auto next = ends_.upper_bound(address);
  if (next == ends_.begin() || std::prev(next)->second <= address) return std::nullopt;
  return Bytes{std::prev(next)->first, std::prev(next)->second};
}

void Races::host_waited(const Clock& clock) {
  HostThread::current().waited(clock);
  any_thread_.merge(clock);
}

void Races::forget(HostThread& thread) {
  retire(thread.time);
  issuers_.erase(&thread);
}

void Races::forget(Bytes bytes) {
  blocks_.forget(bytes);
  history_.forget(bytes);
}

/// A slot of a stream that is gone serves again for a task that knows its last one.
std::uint32_t Races::new_slot() {
  const Clock& host = *HostThread::current().knows();
  const auto known =
      std::find_if(retired_.begin(), retired_.end(), [&](Moment m) { return host.knows(m); });
  if (known == retired_.end()) return slots_++;
  const std::uint32_t slot = known->slot;
  retired_.erase(known);
  return slot;
}

void Races::retire(StreamTime& stream) {
  if (stream.slot) retired_.push_back({*stream.slot, stream.known.at(*stream.slot)});
  stream.slot.reset();
}

Mark Races::mark(StreamTime& stream, const std::string& what) {
  HostThread& thread = HostThread::current();
  if (!stream.slot) stream.slot = new_slot();
  stream.known.merge(*thread.knows());
  if (!thread.serves_stream()) issuers_[&thread] = thread.knows();
  return {{*stream.slot, stream.known.advance(*stream.slot)},
          std::make_shared<const Origin>(Origin{what, stream.name})};
}

std::shared_ptr<const Clock> Races::end_of(StreamTime& stream) {
  return std::make_shared<const Clock>(stream.known);
}

std::optional<std::string> Races::issue(StreamTime& stream, const std::string& what,
                                        std::span<const sim::Access> accesses, bool releases) {
  if (accesses.empty()) return std::nullopt;
  const Mark by = mark(stream, what);
  Clock known_for_release;
  if (releases) {
    known_for_release = any_thread_;
    known_for_release.merge(stream.known);
  }
  const Clock& known = releases ? known_for_release : stream.known;
  for (const sim::Access& access : accesses) {
    if (access.bytes == 0) continue;
    const Bytes bytes = bytes_of(access);
    const auto conflict =
        access.writes ? history_.write(bytes, by, known) : history_.read(bytes, by, known);
    if (conflict) return found_.emplace_back(describe(*conflict, *by.by, access.writes));
  }
  if (history_.ranges() > sweep_at_) forget_known();
  return std::nullopt;
}

/// Later tasks will know what all issuing threads know by now. One that issues no more for long
/// must not keep all the others' accesses.
void Races::forget_known() {
  constexpr std::size_t too_many = 1 << 20;
  Clock everyone = any_thread_;
  for (const auto& [thread, knows] : issuers_) everyone.intersect(*knows);
  history_.forget_known(everyone);
  if (history_.ranges() > too_many) history_.forget_known(any_thread_);
  sweep_at_ = 2 * history_.ranges() + 4096;
}

std::string Races::describe(const Conflict& conflict, const Origin& later, bool writes) const {
  const Bytes block = blocks_.find(conflict.bytes.begin).value_or(conflict.bytes);
  const auto offset = [&](std::uintptr_t address) { return std::to_string(address - block.begin); };
  return "race: " + later.what + " on " + later.stream + (writes ? " writes" : " reads") +
         " bytes " + offset(conflict.bytes.begin) + ".." + offset(conflict.bytes.end) +
         " of block " + hex(block.begin) + " (" + std::to_string(block.end - block.begin) +
         " bytes) that " + conflict.earlier.by->what + " on " + conflict.earlier.by->stream +
         (conflict.earlier_writes ? " writes" : " reads") + "; no event orders them";
}

}  // namespace tessera::cudart
