// SPDX-License-Identifier: Apache-2.0
#include "wrong_calls.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "tessera/base/log.hpp"

namespace tessera::train {
namespace {

using comm::Buffer;
using comm::Request;
using Counts = std::span<const std::int64_t>;

}  // namespace

class WrongCalls::Counted final : public comm::Communicator {
 public:
  Counted(WrongCalls& calls, std::unique_ptr<comm::Communicator> inner)
      : Communicator(inner->rank(), inner->size(), inner->axis()),
        calls_(calls),
        inner_(std::move(inner)) {
    calls_.all_.push_back(this);
  }
  ~Counted() override { std::erase(calls_.all_, this); }

  std::string_view backend() const override { return inner_->backend(); }
  comm::Communicator& host() override {
    return &inner_->host() == inner_.get() ? *this : inner_->host();
  }
  const comm::Traffic& traffic() const override { return inner_->traffic(); }

  Request all_reduce(Buffer inout, comm::Op op) override {
    return call([&](std::int64_t less) {
      return inner_->all_reduce(inout.part(0, inout.count - less), op);
    });
  }
  Request all_gather(Buffer in, Buffer out) override {
    return call([&](std::int64_t less) {
      return inner_->all_gather(in.part(0, in.count - less), out.part(0, out.count - less * size_));
    });
  }
  Request reduce_scatter(Buffer in, Buffer out, comm::Op op) override {
    return call([&](std::int64_t less) {
      return inner_->reduce_scatter(in.part(0, in.count - less * size_),
                                    out.part(0, out.count - less), op);
    });
  }
  Request broadcast(Buffer inout, int root) override {
    return call([&](std::int64_t less) {
      return inner_->broadcast(inout.part(0, inout.count - less), root);
    });
  }
  Request all_to_all(Buffer in, Buffer out) override {
    return call([&](std::int64_t less) {
      return inner_->all_to_all(in.part(0, in.count - less * size_),
                                out.part(0, out.count - less * size_));
    });
  }
  Request all_to_all_v(Buffer in, Counts in_counts, Buffer out, Counts out_counts) override {
    return call([&](std::int64_t less) {
      std::vector<std::int64_t> fewer(in_counts.begin(), in_counts.end());
      const auto some = std::ranges::find_if(fewer, [](std::int64_t count) { return count > 0; });
      if (some != fewer.end()) *some -= less;
      return inner_->all_to_all_v(in.part(0, in.count - (some != fewer.end() ? less : 0)), fewer,
                                  out, out_counts);
    });
  }
  void group_start() override {
    group_ = fate();
    if (group_ != Kind::skip) inner_->group_start();
  }
  void send(Buffer in, int peer) override {
    if (group_ != Kind::skip) inner_->send(shortened(in), peer);
  }
  void recv(Buffer out, int peer) override {
    if (group_ != Kind::skip) inner_->recv(shortened(out), peer);
  }
  Request group_end() override {
    if (std::exchange(group_, std::nullopt) == Kind::skip) return {};
    return inner_->group_end();
  }
  void barrier() override {
    if (fate() != Kind::skip) inner_->barrier();
  }
  std::unique_ptr<comm::Communicator> split(int color, int key, const std::string& axis) override {
    return calls_.around(inner_->split(color, key, axis));
  }
  /// Not counted.
  void plain_barrier() { inner_->barrier(); }

 private:
  std::optional<Kind> fate() { return calls_.fate(*this); }
  Buffer shortened(const Buffer& buffer) const {
    return group_ == Kind::shape && buffer.count > 0 ? buffer.part(0, buffer.count - 1) : buffer;
  }
  /// issue(elements of each part to omit)
  template <class Issue>
  Request call(Issue issue) {
    const auto wrong = fate();
    return wrong == Kind::skip ? Request() : issue(wrong == Kind::shape ? 1 : 0);
  }

  WrongCalls& calls_;
  std::unique_ptr<comm::Communicator> inner_;
  std::optional<Kind> group_;  ///< what happens to the group that is open
};

/// As an error: other ranks than 0 log no warnings.
void WrongCalls::tell_missed() const {
  if (armed_)
    log::error("debug.inject_faults: {} did not happen; {} call(s) are missing", armed_->what,
               armed_->left);
}

std::optional<WrongCalls::Kind> WrongCalls::fate(const Counted& caller) {
  if (!armed_ || --armed_->left > 0) return std::nullopt;
  const auto [kind, left, what] = *std::exchange(armed_, std::nullopt);
  if (kind == Kind::freeze) std::raise(SIGSTOP);
  if (kind == Kind::die) std::raise(SIGKILL);
  if (kind == Kind::memory) exhaust_memory_();
  if (kind == Kind::order) {
    const auto other =
        std::ranges::find_if(all_, [&](const Counted* one) { return one != &caller; });
    if (other != all_.end())
      (*other)->plain_barrier();
    else
      log::error("debug.inject_faults: {} did not happen; the rank has one communicator", what);
  }
  return kind;
}

std::unique_ptr<comm::Communicator> WrongCalls::around(std::unique_ptr<comm::Communicator> inner) {
  if (!inner || inner->size() == 1) return inner;
  return std::make_unique<Counted>(*this, std::move(inner));
}

}  // namespace tessera::train
