// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "tessera/base/error.hpp"
#include "tessera/comm/communicator.hpp"

namespace tessera::comm {
namespace {

Buffer bytes_of(std::string& text) {
  return {text.data(), static_cast<std::int64_t>(text.size()), DType::u8, Memory::host};
}

/// Every rank's value, in rank order.
template <class T>
std::vector<T> gather(Communicator& communicator, T value, DType dtype) {
  std::vector<T> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather({&value, 1, dtype}, {all.data(), communicator.size(), dtype}).wait();
  return all;
}

}  // namespace

double all_reduce_scalar(Communicator& communicator, double value, Op op) {
  Communicator& host = communicator.host();
  if (op == Op::sum) {
    const std::vector<double> all = gather(host, value, DType::f64);
    return std::accumulate(all.begin(), all.end(), 0.0);
  }
  host.all_reduce({&value, 1, DType::f64}, op).wait();
  return value;
}

std::int64_t all_reduce_scalar(Communicator& communicator, std::int64_t value, Op op) {
  communicator.host().all_reduce({&value, 1, DType::i64}, op).wait();
  return value;
}

std::string broadcast_string(Communicator& communicator, const std::string& value, int root) {
  Communicator& host = communicator.host();
  auto length = static_cast<std::int64_t>(value.size());
  host.broadcast({&length, 1, DType::i64}, root).wait();
  std::string text = value;
  text.resize(static_cast<std::size_t>(length));
  host.broadcast(bytes_of(text), root).wait();
  return text;
}

std::vector<std::string> all_gather_strings(Communicator& communicator, const std::string& value) {
  Communicator& host = communicator.host();
  const auto length = static_cast<std::int64_t>(value.size());
  const std::vector<std::int64_t> lengths = gather(host, length, DType::i64);
  const std::int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  std::string padded = value, all(static_cast<std::size_t>(longest * host.size()), '\0');
  padded.resize(static_cast<std::size_t>(longest));
  host.all_gather(bytes_of(padded), bytes_of(all)).wait();
  std::vector<std::string> texts;
  for (int r = 0; r < host.size(); ++r)
    texts.push_back(all.substr(static_cast<std::size_t>(r * longest),
                               static_cast<std::size_t>(lengths[static_cast<std::size_t>(r)])));
  return texts;
}

void gather_strings(Communicator& communicator, const std::string& value,
                    const std::function<void(const std::string&)>& take) {
  Communicator& host = communicator.host();
  const auto length = static_cast<std::int64_t>(value.size());
  const std::vector<std::int64_t> lengths = gather(host, length, DType::i64);
  if (host.rank() != 0) {
    host.group_start();
    host.send(bytes_of(const_cast<std::string&>(value)), 0);
    host.group_end().wait();
    return;
  }
  take(value);
  for (int from = 1; from < host.size(); ++from) {
    std::string text(static_cast<std::size_t>(lengths[static_cast<std::size_t>(from)]), '\0');
    host.group_start();
    host.recv(bytes_of(text), from);
    host.group_end().wait();
    take(text);
  }
}

}  // namespace tessera::comm
