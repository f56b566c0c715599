// SPDX-License-Identifier: Apache-2.0
#include "mpi_communicator.hpp"

#include <algorithm>
#include <climits>

#include "arguments.hpp"
#include "pairwise.hpp"
#include "peers.hpp"
#include "reduction.hpp"
#include "tessera/base/shard.hpp"

namespace tessera::comm {
namespace {

// Tags: 0 is the rendezvous', 1 the groups' (mpi_group.cpp); collectives take turns through the
// rest (MPI promises tags up to 32767).
constexpr int kFirstTag = 2;
constexpr std::uint64_t kTags = 1u << 14;

/// gathered size up to which one exchange beats two
constexpr std::size_t kSmallAllReduce_bytes = 64 * 1024;
constexpr int kManyRanks = 32;  ///< from here MPI's own collectives beat pairwise messages

/// Of integers, whose reductions have the same bits in every order; else MPI_DATATYPE_NULL.
MPI_Datatype integer_type(DType dtype) {
  if (dtype == DType::i64) return MPI_INT64_T;
  return dtype == DType::i32 ? MPI_INT32_T : MPI_DATATYPE_NULL;
}

}  // namespace

MpiCommunicator::MpiCommunicator(MpiHandle comm, const std::string& axis, Rules rules)
    : Communicator(0, 1, axis),
      handle_(std::move(comm)),
      place_{handle_.get(), 0, 1, axis, {}},
      rules_(rules),
      rendezvous_(place_) {
  check_mpi(MPI_Comm_rank(place_.comm, &rank_), "MPI_Comm_rank", place_);
  check_mpi(MPI_Comm_size(place_.comm, &size_), "MPI_Comm_size", place_);
  place_.rank = rank_;
  place_.size = size_;
  place_.members = members_of(place_.comm);
}

MpiCommunicator::~MpiCommunicator() {
  if (rendezvous_.broken()) handle_.abandon();
}

CallInfo MpiCommunicator::info(Call call, const Buffer& buffer, Op op, int root) {
  return {++sequence_, buffer.count, root, call, buffer.dtype, op, 0};
}

/// Whether members meet before an operation.
bool MpiCommunicator::compares() const {
  return rules_ == Rules::strict || (rules_ == Rules::relaxed && check_collectives());
}

LoggedCall MpiCommunicator::logged(const CallInfo& info, int peer,
                                   std::span<const Buffer> in) const {
  if (rules_ == Rules::carried) return {};
  return {info, rank_, size_, axis_, place_.members, peer, in};
}

int MpiCommunicator::tag() const { return kFirstTag + static_cast<int>(sequence_ % kTags); }

MpiCommunicator::Operation MpiCommunicator::begin(const CallInfo& info, const Buffer& in,
                                                  std::size_t sent_bytes,
                                                  const PairCounts& counts) {
  expect_no_group(*this, group_.has_value(), info.call);
  traffic_.calls += 1;
  traffic_.bytes += static_cast<std::int64_t>(sent_bytes);
  auto operation = std::make_unique<MpiOperation>(
      place_, info, &traffic_, logged(info, -1, std::span(&in, in.data ? 1 : 0)));
  if (compares()) {
    operation->held();
    rendezvous_.meet_all(info, counts);
    operation->let_go();
  }
  return operation;
}

Request MpiCommunicator::launch(Operation operation) {
  if (rules_ != Rules::strict) return Request(std::move(operation));
  try {
    operation->wait_at_most(strict_timeout_seconds());
  } catch (const Error& error) {
    rendezvous_.give_up(error.what());
    throw;
  }
  return {};
}

Request MpiCommunicator::all_reduce(Buffer inout, Op op) {
  expect_memory(*this, inout, Memory::host);
  Operation operation = begin(info(Call::all_reduce, inout, op), inout, inout.bytes());
  const bool small = inout.bytes() * static_cast<std::size_t>(size_) <= kSmallAllReduce_bytes ||
                     inout.count < size_;
  if (size_ >= kManyRanks && small && integer_type(inout.dtype) != MPI_DATATYPE_NULL) {
    all_reduce_integers(*operation, inout, op);
  } else if (small) {
    all_reduce_small(*operation, inout, op);
  } else {
    all_reduce_large(*operation, inout, op);
  }
  return launch(std::move(operation));
}

/// Messages by the logarithm of the ranks, where all_reduce_small() has as many as ranks. In memory
/// of the operation, which outlives one that is given up: it cannot be cancelled.
void MpiCommunicator::all_reduce_integers(MpiOperation& operation, Buffer inout, Op op) {
  const MPI_Op mpi_op = op == Op::sum ? MPI_SUM : op == Op::max ? MPI_MAX : MPI_MIN;
  const Buffer own{operation.scratch(inout.bytes()), inout.count, inout.dtype, Memory::host};
  copy_part(inout, own);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallreduce(MPI_IN_PLACE, own.data, static_cast<int>(own.count),
                           integer_type(own.dtype), mpi_op, place_.comm, &request),
            "MPI_Iallreduce", place_);
  operation.add(request, "MPI_Iallreduce");
  operation.then([=](MpiOperation&) { copy_part(own, inout); });
}

void MpiCommunicator::all_reduce_small(MpiOperation& operation, Buffer inout, Op op) {
  const Buffer all{operation.scratch(inout.bytes() * static_cast<std::size_t>(size_)),
                   inout.count * size_, inout.dtype, Memory::host};
  const Buffer mine = all.part(rank_ * inout.count, inout.count);
  copy_part(inout, mine);
  all_gather_many(operation, mine, all);
  operation.then([=, this](MpiOperation&) {
    std::vector<const void*> parts;
    for (int r = 0; r < size_; ++r) parts.push_back(all.part(r * inout.count, inout.count).data);
    reduce_parts(parts, inout.data, inout.count, inout.dtype, op);
  });
}

void MpiCommunicator::all_reduce_large(MpiOperation& operation, Buffer inout, Op op) {
  const auto chunk = [=, this](int r) {
    const Range range = chunk_of(inout.count, size_, r);
    return inout.part(range.begin, range.size);
  };
  const Buffer mine = chunk(rank_);
  std::byte* received = operation.scratch(mine.bytes() * static_cast<std::size_t>(size_ - 1));
  const int tag = this->tag();
  for_each_peer(place_, [&](int to, int from) {
    operation.receive(slot_of(place_, received, from, mine.bytes()), mine.bytes(), from, tag);
    operation.send(chunk(to).data, chunk(to).bytes(), to, tag);
  });
  const auto reduce_and_return = [=, this](MpiOperation& ready) {
    reduce_parts(parts_of(place_, mine.data, received, mine.bytes()), mine.data, mine.count,
                 mine.dtype, op);
    for_each_peer(place_, [&](int to, int from) {
      ready.receive(chunk(from).data, chunk(from).bytes(), from, tag);
      ready.send(mine.data, mine.bytes(), to, tag);
    });
  };
  operation.then(reduce_and_return, true);
}

Request MpiCommunicator::all_gather(Buffer in, Buffer out) {
  expect_memory(*this, in, Memory::host);
  expect_memory(*this, out, Memory::host);
  expect_sizes(*this, in, out, size_, 1);
  Operation operation = begin(info(Call::all_gather, in), in, in.bytes());
  const Buffer mine = out.part(rank_ * in.count, in.count);
  copy_part(in, mine);
  all_gather_many(*operation, mine, out);
  return launch(std::move(operation));
}

/// `mine` is this rank's part of `out`. Open MPI before 4.1.4 finds the parts by an int.
void MpiCommunicator::all_gather_many(MpiOperation& operation, Buffer mine, Buffer out) {
  if (size_ >= kManyRanks && out.bytes() <= INT_MAX) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, out.data, static_cast<int>(mine.bytes()),
                             MPI_BYTE, place_.comm, &request),
              "MPI_Iallgather", place_);
    return operation.add(request, "MPI_Iallgather");
  }
  for_each_peer(place_, [&](int to, int from) {
    const Buffer theirs = out.part(from * mine.count, mine.count);
    operation.receive(theirs.data, theirs.bytes(), from, tag());
    operation.send(mine.data, mine.bytes(), to, tag());
  });
}

Request MpiCommunicator::reduce_scatter(Buffer in, Buffer out, Op op) {
  expect_memory(*this, in, Memory::host);
  expect_memory(*this, out, Memory::host);
  expect_sizes(*this, in, out, 1, size_);
  Operation operation = begin(info(Call::reduce_scatter, in, op), in, in.bytes());
  std::byte* received = operation->scratch(out.bytes() * static_cast<std::size_t>(size_ - 1));
  for_each_peer(place_, [&](int to, int from) {
    const Buffer theirs = in.part(to * out.count, out.count);
    operation->receive(slot_of(place_, received, from, out.bytes()), out.bytes(), from, tag());
    operation->send(theirs.data, theirs.bytes(), to, tag());
  });
  const Buffer mine = in.part(rank_ * out.count, out.count);
  operation->then([=, this](MpiOperation&) {
    reduce_parts(parts_of(place_, mine.data, received, out.bytes()), out.data, out.count, out.dtype,
                 op);
  });
  return launch(std::move(operation));
}

Request MpiCommunicator::broadcast(Buffer inout, int root) {
  expect_memory(*this, inout, Memory::host);
  expect_peer(*this, root);
  Operation operation = begin(info(Call::broadcast, inout, Op::sum, root),
                              rank_ == root ? inout : Buffer(), rank_ == root ? inout.bytes() : 0);
  constexpr std::size_t kPiece_bytes = std::size_t{1} << 30;
  for (std::size_t first = 0; first < inout.bytes(); first += kPiece_bytes) {
    const int bytes = static_cast<int>(std::min(kPiece_bytes, inout.bytes() - first));
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ibcast(static_cast<std::byte*>(inout.data) + first, bytes, MPI_BYTE, root,
                         place_.comm, &request),
              "MPI_Ibcast", place_);
    operation->add(request, "MPI_Ibcast");
  }
  return launch(std::move(operation));
}

Request MpiCommunicator::all_to_all(Buffer in, Buffer out) {
  TESSERA_EXPECT(in.count % size_ == 0, "axis {} of {} ranks: {} elements do not divide", axis_,
                 size_, in.count);
  expect_memory(*this, in, Memory::host);
  expect_memory(*this, out, Memory::host);
  expect_sizes(*this, in, out, 1, 1);
  Operation operation = begin(info(Call::all_to_all, in), in, in.bytes());
  const std::int64_t count = in.count / size_;
  copy_part(in.part(rank_ * count, count), out.part(rank_ * count, count));
  for_each_peer(place_, [&](int to, int from) {
    const Buffer target = out.part(from * count, count), source = in.part(to * count, count);
    operation->receive(target.data, target.bytes(), from, tag());
    operation->send(source.data, source.bytes(), to, tag());
  });
  return launch(std::move(operation));
}

Request MpiCommunicator::all_to_all_v(Buffer in, std::span<const std::int64_t> in_counts,
                                      Buffer out, std::span<const std::int64_t> out_counts) {
  expect_memory(*this, in, Memory::host);
  expect_memory(*this, out, Memory::host);
  expect_counts(*this, in, in_counts);
  expect_counts(*this, out, out_counts);
  TESSERA_EXPECT(in.dtype == out.dtype, "axis {}: in is {}, out is {}", axis_, name_of(in.dtype),
                 name_of(out.dtype));
  TESSERA_EXPECT(
      in_counts[static_cast<std::size_t>(rank_)] == out_counts[static_cast<std::size_t>(rank_)],
      "axis {}: rank {} sends itself another count than it expects", axis_, rank_);
  Operation operation =
      begin(info(Call::all_to_all_v, in), in, in.bytes(), {in_counts, out_counts});
  const auto in_first = offsets_of(in_counts), out_first = offsets_of(out_counts);
  const auto source = [&](int r) {
    return in.part(in_first[static_cast<std::size_t>(r)], in_counts[static_cast<std::size_t>(r)]);
  };
  const auto target = [&](int r) {
    return out.part(out_first[static_cast<std::size_t>(r)],
                    out_counts[static_cast<std::size_t>(r)]);
  };
  copy_part(source(rank_), target(rank_));
  for_each_peer(place_, [&](int to, int from) {
    operation->receive(target(from).data, target(from).bytes(), from, tag());
    operation->send(source(to).data, source(to).bytes(), to, tag());
  });
  return launch(std::move(operation));
}

void MpiCommunicator::barrier() {
  Operation operation = begin(info(Call::barrier, {}), {}, 0);
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(place_.comm, &request), "MPI_Ibarrier", place_);
  operation->add(request, "MPI_Ibarrier");
  operation->wait();
}

std::unique_ptr<Communicator> MpiCommunicator::split(int color, int key, const std::string& axis) {
  LoggedCall call = logged(info(Call::split, {}));
  call.waited_for();
  MPI_Comm made = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(place_.comm, color < 0 ? MPI_UNDEFINED : color, key, &made),
            "MPI_Comm_split", place_);
  call.done();
  if (made == MPI_COMM_NULL) return nullptr;
  return std::make_unique<MpiCommunicator>(MpiHandle(made), axis, rules_);
}

}  // namespace tessera::comm
