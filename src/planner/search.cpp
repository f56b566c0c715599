// SPDX-License-Identifier: Apache-2.0
#include "tessera/planner/search.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "each_variant.hpp"
#include "step_bound.hpp"

namespace tessera::planner {
namespace {

constexpr std::size_t kShown = 5;

/// What a rank computes for a microbatch, and who shares the rest.
constexpr std::array kCells{Knob::tp,         Knob::cp,        Knob::ep,       Knob::etp,
                            Knob::microbatch, Knob::recompute, Knob::async_tp, Knob::precision};
constexpr std::array kShares{Knob::pp, Knob::replicate, Knob::reshard, Knob::accumulate};

/// Variants that look alike: only one of them is shown.
bool alike(const Variant& a, const Variant& b) {
  return std::ranges::all_of(std::array{Knob::tp, Knob::cp, Knob::ep, Knob::etp, Knob::pp},
                             [&](Knob knob) { return a[knob] == b[knob]; });
}

/// Variants that compute the same, and the least time of any of them.
struct Group {
  Variant variant;
  StepBound bound;
  double seconds;
};

/// Those of a group that differ in the schedule alone.
struct Branch {
  Variant variant;
  double seconds;
};

class Search {
 public:
  Search(const VariantSpace& space, const Machine& machine, const Stack& stack)
      : space_(space), machine_(machine), stack_(stack) {}

  SearchResult run() {
    consider(space_.own());
    std::vector<Group> groups = all_groups();
    std::ranges::stable_sort(groups, {}, &Group::seconds);
    for (const Group& group : groups) {
      if (group.seconds > threshold()) break;
      for (const Branch& branch : branches(group)) {
        if (branch.seconds > threshold()) break;
        Variant variant = branch.variant;
        for (const int schedule : space_.values(Knob::schedule)) {
          variant[Knob::schedule] = schedule;
          if (space_.legal(variant)) consider(variant);
        }
      }
    }
    return std::move(out_);
  }

 private:
  /// Nothing slower is among the best.
  double threshold() const {
    return out_.best.size() < kShown ? std::numeric_limits<double>::infinity()
                                     : out_.best.back().price.step_seconds;
  }

  std::vector<Group> all_groups() const {
    std::vector<Group> out;
    Variant first = space_.own();
    for (const Knob knob : {Knob::pp, Knob::replicate}) first[knob] = 1;
    each_variant(space_, kCells, first, [&](const Variant& variant) {
      if (space_.own_work().gpus % (variant[Knob::tp] * variant[Knob::cp]) != 0) return;
      const Workload work = space_.without_lists(variant);
      const StepBound bound(work, machine_, stack_);
      out.push_back({variant, bound, bound.computation(work, space_.sequences())});
    });
    return out;
  }

  /// Those that may fit and be among the best, the least bound first.
  std::vector<Branch> branches(const Group& group) const {
    std::vector<Branch> out;
    each_variant(space_, kShares, group.variant, [&](const Variant& variant) {
      if (!space_.divides(variant)) return;
      const Workload work = space_.without_lists(variant);
      if (!may_fit(least_bytes(work, stack_), machine_)) return;
      const double seconds = group.bound.seconds(work);
      if (seconds <= threshold()) out.push_back({variant, seconds});
    });
    std::ranges::stable_sort(out, {}, &Branch::seconds);
    return out;
  }

  void consider(const Variant& variant) {
    const Workload work = space_.workload(variant);
    if (!fits(memory_of(work, stack_), machine_)) return;
    ++out_.priced;
    Option option{variant, {}, {}, price(work, machine_, stack_)};
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
    if (out_.best.size() > kShown) out_.best.pop_back();
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
  SearchResult out_;
};

}  // namespace

SearchResult search(const VariantSpace& space, const Machine& machine, const Stack& stack) {
  return Search(space, machine, stack).run();
}

}  // namespace tessera::planner
