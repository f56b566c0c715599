// SPDX-License-Identifier: Apache-2.0
#include "tessera/parallel/ordered_sums.hpp"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <bit>
#include <utility>
#include <vector>

#include "tessera/base/error.hpp"
#include "tessera/base/shard.hpp"
#include "tessera/parallel/tensor_buffer.hpp"

namespace tessera::parallel {
namespace {

using at::Tensor;
using comm::Buffer;
using comm::Request;
using RankCounts = std::span<const std::int64_t>;

/// gathered size up to which one exchange beats two
constexpr std::size_t kSmall_bytes = 64 * 1024;

bool is_ordered(DType dtype, comm::Op op) {
  const bool floats =
      dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  return floats && op == comm::Op::sum;
}

/// Rows [first, first + count) of `rows`, added as comm::reduce_parts adds.
Tensor tree_sum(const Tensor& rows, std::int64_t first, std::int64_t count) {
  if (count == 1) {
    const Tensor row = rows.select(0, first);
    return row.scalar_type() == at::kDouble ? row : row.to(at::kFloat);
  }
  const auto half = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(count)) / 2);
  return tree_sum(rows, first, half).add(tree_sum(rows, first + half, count - half));
}

class OrderedSums final : public comm::Communicator {
 public:
  OrderedSums(std::unique_ptr<Communicator> inner, at::Device device)
      : Communicator(inner->rank(), inner->size(), inner->axis()),
        inner_(std::move(inner)),
        device_(device) {}

  std::string_view backend() const override { return inner_->backend(); }
  Communicator& host() override { return inner_->host(); }
  const comm::Traffic& traffic() const override { return inner_->traffic(); }

  Request all_reduce(Buffer inout, comm::Op op) override {
    if (!is_ordered(inout.dtype, op)) return inner_->all_reduce(inout, op);
    const bool small =
        inout.bytes() * static_cast<std::size_t>(size_) <= kSmall_bytes || inout.count < size_;
    small ? sum_gathered(inout) : sum_scattered(inout);
    return {};
  }
  Request all_gather(Buffer in, Buffer out) override { return inner_->all_gather(in, out); }
  Request reduce_scatter(Buffer in, Buffer out, comm::Op op) override {
    if (!is_ordered(in.dtype, op)) return inner_->reduce_scatter(in, out, op);
    const Tensor rows = empty_rows(out.count, out.dtype);
    inner_->all_to_all(in, buffer_of(rows)).wait();
    sum_into(out, rows);
    return {};
  }
  Request broadcast(Buffer inout, int root) override { return inner_->broadcast(inout, root); }
  Request all_to_all(Buffer in, Buffer out) override { return inner_->all_to_all(in, out); }
  Request all_to_all_v(Buffer in, RankCounts in_counts, Buffer out,
                       RankCounts out_counts) override {
    return inner_->all_to_all_v(in, in_counts, out, out_counts);
  }
  void group_start() override { inner_->group_start(); }
  void send(Buffer in, int peer) override { inner_->send(in, peer); }
  void recv(Buffer out, int peer) override { inner_->recv(out, peer); }
  Request group_end() override { return inner_->group_end(); }
  void barrier() override { inner_->barrier(); }
  std::unique_ptr<Communicator> split(int color, int key, const std::string& axis) override {
    return with_ordered_sums(inner_->split(color, key, axis), device_);
  }

 private:
  Tensor empty_rows(std::int64_t count, DType dtype) const {
    return at::empty({size_, count}, at::TensorOptions(device_).dtype(scalar_type_of(dtype)));
  }
  void sum_into(const Buffer& out, const Tensor& rows) const {
    const at::NoGradGuard guard;
    at::for_blob(out.data, {out.count})
        .options(at::TensorOptions(device_).dtype(scalar_type_of(out.dtype)))
        .target_device(device_)
        .make_tensor()
        .copy_(tree_sum(rows, 0, size_));
  }
  void sum_gathered(const Buffer& inout) {
    const Tensor rows = empty_rows(inout.count, inout.dtype);
    inner_->all_gather(inout, buffer_of(rows)).wait();
    sum_into(inout, rows);
  }
  /// Each rank sums a chunk and sends it to the others.
  void sum_scattered(const Buffer& inout) {
    std::vector<Buffer> chunks;
    std::vector<std::int64_t> counts;
    for (int r = 0; r < size_; ++r) {
      const Range range = chunk_of(inout.count, size_, r);
      chunks.push_back(inout.part(range.begin, range.size));
      counts.push_back(range.size);
    }
    const Buffer& mine = chunks[static_cast<std::size_t>(rank_)];
    const Tensor rows = empty_rows(mine.count, mine.dtype);
    const std::vector<std::int64_t> of_mine(static_cast<std::size_t>(size_), mine.count);
    inner_->all_to_all_v(inout, counts, buffer_of(rows), of_mine).wait();
    sum_into(mine, rows);
    inner_->group_start();
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      const Buffer& theirs = chunks[static_cast<std::size_t>(r)];
      if (mine.count > 0) inner_->send(mine, r);
      if (theirs.count > 0) inner_->recv(theirs, r);
    }
    inner_->group_end().wait();
  }

  std::unique_ptr<Communicator> inner_;
  at::Device device_;
};

}  // namespace

std::unique_ptr<comm::Communicator> with_ordered_sums(std::unique_ptr<comm::Communicator> inner,
                                                      at::Device device) {
  if (!inner || inner->backend() != "nccl") return inner;
  return std::make_unique<OrderedSums>(std::move(inner), device);
}

}  // namespace tessera::parallel
