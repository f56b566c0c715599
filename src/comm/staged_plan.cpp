// SPDX-License-Identifier: Apache-2.0
#include "staged_plan.hpp"

#include <algorithm>
#include <utility>

namespace tessera::comm {
namespace {

/// `count` elements of `like` in host memory.
Buffer on_host(void* data, std::int64_t count, const Buffer& like) {
  return {data, count, like.dtype, Memory::host};
}

StagedCopy copy(const Buffer& from, const Buffer& to) { return {from.data, to.data, to.bytes()}; }

/// Elements [first, first + size) of every part of a message.
struct Window {
  std::int64_t first, size;
};

/// Cuts `count` elements so that `rows` times a window fit into a piece. `make(window)` gives the
/// piece.
template <class Make>
StagedPlan cut(const StagedMembers& members, std::int64_t count, DType dtype, int rows, Make make) {
  const auto bytes = size_of(dtype) * static_cast<std::size_t>(rows);
  const auto most =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(members.way.piece_bytes / bytes));
  return {(count + most - 1) / most, [=](std::int64_t index) {
            return make(Window{index * most, std::min(most, count - index * most)});
          }};
}

std::size_t bytes_of(const Window& window, DType dtype, int rows) {
  return static_cast<std::size_t>(window.size) * size_of(dtype) * static_cast<std::size_t>(rows);
}

}  // namespace

StagedPlan plan_all_reduce(const StagedMembers& members, const Buffer& inout, Op op) {
  return cut(members, inout.count, inout.dtype, 1, [=](Window w) {
    StagedPiece piece{Pinned(bytes_of(w, inout.dtype, 1)), {}, {}, {}};
    const Buffer host = on_host(piece.memory.data(), w.size, inout),
                 device = inout.part(w.first, w.size);
    piece.before = {copy(device, host)};
    piece.after = {copy(host, device)};
    piece.exchange = [=](MpiCommunicator& c) { return c.all_reduce(host, op); };
    return piece;
  });
}

StagedPlan plan_all_gather(const StagedMembers& members, const Buffer& in, const Buffer& out) {
  return cut(members, in.count, in.dtype, members.size, [=](Window w) {
    StagedPiece piece{Pinned(bytes_of(w, in.dtype, members.size)), {}, {}, {}};
    const Buffer all = on_host(piece.memory.data(), w.size * members.size, in);
    const Buffer mine = all.part(members.rank * w.size, w.size);
    piece.before = {copy(in.part(w.first, w.size), mine)};
    for (int r = 0; r < members.size; ++r) {
      const Buffer to = out.part(r * in.count + w.first, w.size);
      if (to.data != in.part(w.first, w.size).data)
        piece.after.push_back(copy(all.part(r * w.size, w.size), to));
    }
    piece.exchange = [=](MpiCommunicator& c) { return c.all_gather(mine, all); };
    return piece;
  });
}

StagedPlan plan_reduce_scatter(const StagedMembers& members, const Buffer& in, const Buffer& out,
                               Op op) {
  return cut(members, out.count, in.dtype, members.size, [=](Window w) {
    StagedPiece piece{Pinned(bytes_of(w, in.dtype, members.size)), {}, {}, {}};
    const Buffer all = on_host(piece.memory.data(), w.size * members.size, in);
    const Buffer mine = all.part(members.rank * w.size, w.size);
    for (int r = 0; r < members.size; ++r)
      piece.before.push_back(
          copy(in.part(r * out.count + w.first, w.size), all.part(r * w.size, w.size)));
    piece.after = {copy(mine, out.part(w.first, w.size))};
    piece.exchange = [=](MpiCommunicator& c) { return c.reduce_scatter(all, mine, op); };
    return piece;
  });
}

StagedPlan plan_broadcast(const StagedMembers& members, const Buffer& inout, int root) {
  return cut(members, inout.count, inout.dtype, 1, [=](Window w) {
    StagedPiece piece{Pinned(bytes_of(w, inout.dtype, 1)), {}, {}, {}};
    const Buffer host = on_host(piece.memory.data(), w.size, inout),
                 device = inout.part(w.first, w.size);
    if (members.rank == root)
      piece.before = {copy(device, host)};
    else
      piece.after = {copy(host, device)};
    piece.exchange = [=](MpiCommunicator& c) { return c.broadcast(host, root); };
    return piece;
  });
}

StagedPlan plan_all_to_all(const StagedMembers& members, const Buffer& in, const Buffer& out) {
  const int rows = 2 * members.size;
  const std::int64_t count = in.count / members.size;
  return cut(members, count, in.dtype, rows, [=](Window w) {
    StagedPiece piece{Pinned(bytes_of(w, in.dtype, rows)), {}, {}, {}};
    const Buffer both = on_host(piece.memory.data(), w.size * rows, in);
    const Buffer sent = both.part(0, w.size * members.size);
    const Buffer received = both.part(w.size * members.size, w.size * members.size);
    for (int r = 0; r < members.size; ++r) {
      piece.before.push_back(
          copy(in.part(r * count + w.first, w.size), sent.part(r * w.size, w.size)));
      piece.after.push_back(
          copy(received.part(r * w.size, w.size), out.part(r * count + w.first, w.size)));
    }
    piece.exchange = [=](MpiCommunicator& c) { return c.all_to_all(sent, received); };
    return piece;
  });
}

namespace {

Request post(MpiCommunicator& c, std::span<const Transfer> transfers) {
  c.group_start();
  for (const Transfer& t : transfers) t.sends ? c.send(t.buffer, t.peer) : c.recv(t.buffer, t.peer);
  return c.group_end();
}

Buffer as_bytes(const Buffer& buffer) {
  return {buffer.data, static_cast<std::int64_t>(buffer.bytes()), DType::u8, Memory::host};
}

/// The bytes of `transfers` in a window of each; those that are over are omitted, on both sides of
/// a transfer.
std::vector<Transfer> within(std::span<const Transfer> transfers, std::int64_t first,
                             std::int64_t most) {
  std::vector<Transfer> parts;
  for (const Transfer& t : transfers) {
    const Buffer bytes = as_bytes(t.buffer);
    if (first < bytes.count)
      parts.push_back({t.sends, t.peer, bytes.part(first, std::min(most, bytes.count - first))});
  }
  return parts;
}

StagedPiece group_piece(const std::vector<Transfer>& parts) {
  std::size_t total_bytes = 0;
  for (const Transfer& t : parts) total_bytes += t.buffer.bytes();
  StagedPiece piece{Pinned(total_bytes), {}, {}, {}};
  std::vector<Transfer> staged;
  std::byte* next = piece.memory.data();
  for (const Transfer& t : parts) {
    const Buffer host = on_host(next, t.buffer.count, t.buffer);
    next += t.buffer.bytes();
    if (t.sends)
      piece.before.push_back(copy(t.buffer, host));
    else
      piece.after.push_back(copy(host, t.buffer));
    staged.push_back({t.sends, t.peer, host});
  }
  piece.exchange = [staged = std::move(staged)](MpiCommunicator& c) { return post(c, staged); };
  return piece;
}

}  // namespace

StagedPlan plan_group(const StagedMembers& members, std::vector<Transfer> transfers) {
  constexpr std::int64_t kTransfers = 4;  // usual in a group: to and from two neighbours
  const std::int64_t most =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(members.way.piece_bytes) / kTransfers);
  std::int64_t longest = 0;
  for (const Transfer& t : transfers)
    longest = std::max(longest, static_cast<std::int64_t>(t.buffer.bytes()));
  return {(longest + most - 1) / most, [=, transfers = std::move(transfers)](std::int64_t index) {
            return group_piece(within(transfers, index * most, most));
          }};
}

StagedPlan plan_direct_all_gather(const StagedMembers& members, const Buffer& in,
                                  const Buffer& out) {
  return {in.count > 0 ? 1 : 0, [=](std::int64_t) {
            StagedPiece piece;
            const Buffer all = on_host(out.data, out.count, out);
            const Buffer mine = all.part(members.rank * in.count, in.count);
            if (mine.data != in.data) piece.before = {copy(in, mine)};
            piece.exchange = [=](MpiCommunicator& c) { return c.all_gather(mine, all); };
            return piece;
          }};
}

StagedPlan plan_direct_broadcast(const Buffer& inout, int root) {
  return {inout.count > 0 ? 1 : 0, [=](std::int64_t) {
            StagedPiece piece;
            piece.exchange = [=](MpiCommunicator& c) { return c.broadcast(as_bytes(inout), root); };
            return piece;
          }};
}

StagedPlan plan_direct_group(std::vector<Transfer> transfers) {
  for (Transfer& t : transfers) t.buffer = as_bytes(t.buffer);
  std::erase_if(transfers, [](const Transfer& t) { return t.buffer.count == 0; });
  return {transfers.empty() ? 0 : 1, [transfers = std::move(transfers)](std::int64_t) {
            StagedPiece piece;
            piece.exchange = [=](MpiCommunicator& c) { return post(c, transfers); };
            return piece;
          }};
}

}  // namespace tessera::comm
