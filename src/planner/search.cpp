// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/search.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <queue>

#include "each_variant.hpp"
#include "step_bound.hpp"

namespace tessera::planner {
namespace {

/// What a rank computes for a microbatch; what passes the pipeline; and who shares the rest.
constexpr std::array kCells{Knob::tp,       Knob::cp,         Knob::ep,
                            Knob::etp,      Knob::microbatch, Knob::recompute,
                            Knob::async_tp, Knob::once,       Knob::precision};
constexpr std::array kPipelines{Knob::pp, Knob::schedule, Knob::split};
constexpr std::array kShares{Knob::replicate, Knob::reshard, Knob::accumulate};

/// Variants that look alike: only one of them is shown.
bool alike(const Variant& a, const Variant& b) {
  return std::ranges::all_of(std::array{Knob::tp, Knob::cp, Knob::ep, Knob::etp, Knob::pp},
                             [&](Knob knob) { return a[knob] == b[knob]; });
}

/// Variants that have some knobs in common, and take `seconds` at least.
struct Node {
  enum class Level : std::uint8_t { cells, pipeline, variant };

  double seconds;
  Level level;
  std::size_t bound;  ///< the number of that of its cells
  Variant variant;
};

/// The least first; among equals, what is closest to a variant.
bool later(const Node& a, const Node& b) {
  return a.seconds != b.seconds ? a.seconds > b.seconds : a.level < b.level;
}

class Search {
 public:
  Search(const VariantSpace& space, const Machine& machine, const Stack& stack, std::size_t shown)
      : space_(space), machine_(machine), stack_(stack), shown_(shown) {}

  SearchResult run() {
    if (space_.has(space_.own())) consider(space_.own());
    add_cells();
    while (!nodes_.empty() && nodes_.top().seconds <= threshold()) {
      const Node node = nodes_.top();
      nodes_.pop();
      if (node.seconds > threshold_of(node)) continue;
      if (node.level == Node::Level::cells)
        add_pipelines(node);
      else if (node.level == Node::Level::pipeline)
        add_variants(node);
      else
        consider(node.variant);
    }
    return std::move(out_);
  }

 private:
  /// Nothing slower is among the best.
  double threshold() const {
    return out_.best.size() < shown_ ? std::numeric_limits<double>::infinity()
                                     : out_.best.back().price.step_seconds;
  }

  /// Nor is what is slower than another variant with the same degrees.
  double threshold_of(const Node& node) const {
    if (node.level == Node::Level::cells) return threshold();
    const auto other = std::ranges::find_if(
        out_.best, [&](const Option& one) { return alike(one.variant, node.variant); });
    return other == out_.best.end() ? threshold()
                                    : std::min(threshold(), other->price.step_seconds);
  }

  void push(double seconds, Node::Level level, std::size_t bound, const Variant& variant) {
    const Node node{seconds, level, bound, variant};
    if (seconds <= threshold_of(node)) nodes_.push(node);
  }

  void add_cells() {
    Variant first = space_.own();
    for (const Knob knob : {Knob::pp, Knob::replicate}) first[knob] = 1;
    each_variant(space_, kCells, first, [&](const Variant& variant) {
      if (space_.own_work().gpus % (variant[Knob::tp] * variant[Knob::cp]) != 0) return;
      const Workload work = space_.without_lists(variant);
      bounds_.emplace_back(work, machine_, stack_);
      push(bounds_.back().computation(work, space_.sequences()), Node::Level::cells,
           bounds_.size() - 1, variant);
    });
  }

  void add_pipelines(const Node& node) {
    Variant first = node.variant;
    first[Knob::replicate] = 1;
    first[Knob::reshard] = first[Knob::accumulate] = 0;
    each_variant(space_, kPipelines, first, [&](const Variant& variant) {
      if (!space_.legal(variant)) return;
      Workload work = space_.without_lists(variant);
      work.unsharded_gradients = false;
      work.reshard = true;
      if (!may_fit(least_bytes(work, stack_), machine_)) return;
      push(bounds_[node.bound].pipeline(work, shapes_of(work.pipeline), splits(variant, work)),
           Node::Level::pipeline, node.bound, variant);
    });
  }

  void add_variants(const Node& node) {
    Workload work = space_.without_lists(node.variant);
    const RankMoments& moments = moments_of(node.variant, work.pipeline);
    const bool fits = std::ranges::any_of(std::array{0, 1, 2, 3}, [&](int choice) {
      work.reshard = choice % 2 == 0;
      work.unsharded_gradients = choice / 2 == 1;
      return may_fit(least_bytes(work, stack_, moments), machine_);
    });
    if (!fits) return;
    const std::vector<RankShape> shapes = shapes_of(work.pipeline);
    each_variant(space_, kShares, node.variant, [&](const Variant& variant) {
      if (!space_.legal(variant)) return;
      const Workload one = space_.without_lists(variant);
      const double seconds = bounds_[node.bound].seconds(one, shapes, splits(variant, one));
      if (seconds > threshold() || !may_fit(least_bytes(one, stack_, moments), machine_)) return;
      push(seconds, Node::Level::variant, node.bound, variant);
    });
  }

  /// Nobody knows of lists that the job brings.
  bool splits(const Variant& variant, const Workload& work) const {
    const schedule::Traits* schedule = space_.schedule_of(variant);
    return work.pipeline.lists || !schedule || schedule->splits_backward;
  }

  const RankMoments& moments_of(const Variant& variant, const Pipeline& pipeline) {
    const std::array key{variant[Knob::pp], variant[Knob::schedule], variant[Knob::split],
                         pipeline.microbatches, pipeline.rounds};
    const auto [at, is_new] = moments_.try_emplace(key);
    if (is_new) at->second = full_moments(pipeline, space_.schedule_of(variant));
    return at->second;
  }

  void consider(const Variant& variant) {
    const Workload work = space_.workload(variant);
    if (!fits(memory_of(work, stack_), machine_)) return;
    ++out_.priced;
    Price priced = price(work, machine_, stack_);
    Option option{variant, {}, {}, std::move(priced)};
    if (option.price.step_seconds > threshold()) return;
    const auto other = std::ranges::find_if(
        out_.best, [&](const Option& one) { return alike(one.variant, variant); });
    if (other != out_.best.end() && !better(option, *other)) return;
    std::optional<ChangedJob> job = space_.job(variant);
    if (!job) return;
    option.changes = std::move(job->changes);
    option.job = std::move(job->job);
    if (other != out_.best.end()) out_.best.erase(other);
    out_.best.insert(
        std::ranges::upper_bound(out_.best, option,
                                 [this](const Option& a, const Option& b) { return better(a, b); }),
        std::move(option));
    if (out_.best.size() > shown_) out_.best.pop_back();
  }

  /// Faster, or as fast with fewer knobs turned.
  bool better(const Option& a, const Option& b) const {
    if (a.price.step_seconds != b.price.step_seconds)
      return a.price.step_seconds < b.price.step_seconds;
    return space_.turned(a.variant) < space_.turned(b.variant);
  }

  const VariantSpace& space_;
  const Machine& machine_;
  const Stack& stack_;
  std::size_t shown_;
  std::vector<StepBound> bounds_;
  std::map<std::array<int, 5>, RankMoments> moments_;
  std::priority_queue<Node, std::vector<Node>, decltype(&later)> nodes_{later};
  SearchResult out_;
};

}  // namespace

SearchResult search(const VariantSpace& space, const Machine& machine, const Stack& stack,
                    std::size_t shown) {
  return Search(space, machine, stack, shown).run();
}

}  // namespace tessera::planner
