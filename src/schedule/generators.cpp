// SPDX-License-Identifier: Apache-2.0
// The orders of computation that the field's papers give, each as the few phases that it consists
// of.
#include <algorithm>
#include <deque>

#include "tessera/base/error.hpp"
#include "tessera/schedule/schedule.hpp"

namespace tessera::schedule {
namespace {

/// Writes one rank's list. Chunk c is the rank's c-th stage; each of its microbatches comes in the
/// order of their numbers.
class Writer {
 public:
  Writer(const StageMap& map, PipelineRank rank)
      : stages_(map.stages_of(rank)), forwards_(stages_.size()), backwards_(stages_.size()) {}

  void f(int chunk) { add(ActionKind::forward, chunk, forwards_); }
  void b(int chunk) { add(ActionKind::backward, chunk, backwards_); }
  /// Together, of different chunks.
  void fb(int forward, int backward) {
    f(forward);
    list_.back().overlaps_next = true;
    b(backward);
  }
  void i(int chunk) {
    add(ActionKind::input_gradient, chunk, backwards_);
    owed_.push_back(list_.back());
  }
  /// The weight gradients that have waited longest.
  void w() {
    list_.push_back({ActionKind::weight_gradient, owed_.front().stage, owed_.front().microbatch});
    owed_.pop_front();
  }
  void all_w() {
    while (!owed_.empty()) w();
  }
  int forwards(int chunk) const { return forwards_[position(chunk)].value(); }
  int owed() const { return static_cast<int>(owed_.size()); }

  /// Without the microbatches that only filled a round up.
  ActionList take(int microbatches) {
    std::erase_if(list_,
                  [microbatches](const Action& a) { return a.microbatch.value() >= microbatches; });
    for (std::size_t i = 0; i < list_.size(); ++i)
      if (list_[i].overlaps_next) list_[i].overlaps_next = has_partner(i);
    return std::move(list_);
  }

 private:
  bool has_partner(std::size_t i) const {
    return i + 1 < list_.size() && list_[i + 1].kind == ActionKind::backward &&
           list_[i + 1].stage != list_[i].stage;
  }
  using Next = std::vector<MicrobatchIndex>;  ///< by chunk
  static std::size_t position(int chunk) { return static_cast<std::size_t>(chunk); }

  void add(ActionKind kind, int chunk, Next& next) {
    MicrobatchIndex& microbatch = next[position(chunk)];
    list_.push_back({kind, stages_[position(chunk)], microbatch});
    ++microbatch;
  }

  const std::vector<StageIndex>& stages_;
  Next forwards_, backwards_;
  std::deque<Action> owed_;
  ActionList list_;
};

void times(int count, const auto& body) {
  for (int k = 0; k < count; ++k) body();
}

/// All forwards, chunk by chunk, then all backwards: GPipe, and with several chunks LoopedBFS.
void breadth_first(Writer& rank, int chunks, int m) {
  for (int c = 0; c < chunks; ++c) times(m, [&] { rank.f(c); });
  for (int c = chunks; c-- > 0;) times(m, [&] { rank.b(c); });
}

/// `ahead` forwards, then alternately; what is left of the backwards.
void one_f_one_b(Writer& rank, int ahead, int m) {
  times(std::min(m, ahead), [&] { rank.f(0); });
  for (int k = 0; k < m; ++k) {
    rank.b(0);
    if (rank.forwards(0) < m) rank.f(0);
  }
}

/// 1F1B with I in the place of B; rank r owes r weight gradients, which fill its waits at the end.
void zb_h1(Writer& rank, int r, int ranks, int m) {
  times(std::min(m, ranks - r), [&] { rank.f(0); });
  for (int k = 0; k < m; ++k) {
    rank.i(0);
    if (rank.owed() > r) rank.w();
    if (rank.forwards(0) < m) rank.f(0);
  }
  rank.all_w();
}

/// Microbatches in rounds of (about) one a rank; within a round chunk after chunk. Splits B like
/// ZB-H1 where asked to.
void interleaved(Writer& rank, int r, int ranks, int chunks, int m, bool zero_bubble) {
  const int round = m / std::max(1, m / ranks), all = m * chunks;
  int forwards = 0;
  const auto forward = [&] { rank.f(forwards++ / round % chunks); };
  times(std::min(all, (chunks - 1) * round + 2 * (ranks - 1 - r)), forward);
  for (int k = 0; k < all; ++k) {
    if (forwards < all) forward();
    const int chunk = chunks - 1 - k / round % chunks;
    zero_bubble ? rank.i(chunk) : rank.b(chunk);
    if (zero_bubble && rank.owed() > r) rank.w();
  }
  rank.all_w();
}

/// ZB-V: chunk 0 on the way down, chunk 1 on the way up; as many activations on every rank as 1F1B
/// has on its first.
void zb_v(Writer& rank, int r, int ranks, int m) {
  times(2 * (ranks - r) - 1, [&] { rank.f(0); });
  times(r, [&] { rank.f(1), rank.f(0); });
  times(ranks - r, [&] { rank.f(1), rank.i(1), rank.w(); });
  while (rank.forwards(1) < rank.forwards(0) || rank.forwards(0) < m) {
    if (rank.forwards(0) < m) rank.f(0);
    rank.i(0), rank.w();
    rank.f(1), rank.i(1), rank.w();
  }
  times(r, [&] { rank.i(0), rank.i(1); });
  times(ranks - r, [&] { rank.i(0), rank.w(); });
  rank.all_w();
}

/// No forwards are left: the second half of the last r + 1 pairs of backwards puts its weight
/// gradients off.
void dual_pipe_v_tail(Writer& rank, int r) {
  for (int k = 0; k < 2 * (r + 1); ++k) {
    const int chunk = k % 2 == 0 ? 1 : 0;
    k <= r ? rank.b(chunk) : rank.i(chunk);
  }
}

/// DualPipeV: forwards of one direction are paired with backwards of the other. The last rank's
/// first two come one after the other, for a smaller bubble, as in PyTorch.
void dual_pipe_v(Writer& rank, int r, int ranks, int m) {
  const int below = ranks - 1 - r;
  times(2 * below, [&] { rank.f(0); });
  times(r + 1, [&] { rank.f(0), rank.f(1); });
  times(below, [&] { rank.i(1), rank.w(), rank.f(1); });
  for (int k = 0; k < m - 2 * ranks + r + 1; ++k) {
    if (k > 0 || below > 0)
      rank.fb(0, 1);
    else
      rank.f(0), rank.b(1);
    rank.fb(1, 0);
  }
  times(below, [&] { rank.b(1), rank.fb(1, 0); });
  dual_pipe_v_tail(rank, r);
  times(below, [&] { rank.w(), rank.i(0); });
  rank.all_w();
}

bool same_number_each(const StageMap& map) {
  const std::size_t each = map.stages_of(PipelineRank(0)).size();
  for (const PipelineRank rank : map.each_rank())
    if (map.stages_of(rank).size() != each) return false;
  return true;
}

bool folded(const StageMap& map) {
  for (const StageIndex stage : map.each_stage())
    if (!map.same_rank(stage, map.last() - stage.value())) return false;
  return true;
}

/// Every rank comes once in each run of `ranks` stages, at the same place.
bool looped(const StageMap& map) {
  for (StageIndex stage(map.ranks()); map.has(stage); ++stage)
    if (!map.same_rank(stage, stage - map.ranks())) return false;
  return true;
}

void require_fits(Kind schedule, const StageMap& map) {
  const int chunks = map.stages() / map.ranks();
  const auto need = [&](bool good, const char* what) {
    require(good && same_number_each(map), ExitCode::usage,
            "schedule {} does not fit {} stages on {} pipeline ranks this way; it needs {}",
            traits_of(schedule).name, map.stages(), map.ranks(), what);
  };
  switch (traits_of(schedule).stages) {
    case StagesPerRank::one:
      return need(chunks == 1, "one stage on each rank");
    case StagesPerRank::two:
      return need(chunks == 2 && folded(map), "two stages on each rank, stage map \"v\"");
    case StagesPerRank::several:
      return need(looped(map), "the same number of stages on each rank, stage map \"loop\"");
  }
}

/// Microbatches that fill the schedule's rounds.
int filled(const Traits& schedule, int ranks, int m) {
  if (!schedule.fills_rounds(m, ranks)) return (m + ranks - 1) / ranks * ranks;
  return schedule.stages == StagesPerRank::two ? std::max(m, 2 * ranks) : m;
}

ActionList compute_order(Kind schedule, const StageMap& map, PipelineRank rank, int microbatches) {
  const int p = map.ranks(), chunks = map.stages() / p;
  const int r = map.stages_of(rank)[0].value();  // the rank's place in the first run of stages
  const int m = filled(traits_of(schedule), p, microbatches);
  Writer writer(map, rank);
  switch (schedule) {
    case Kind::gpipe:
    case Kind::looped_bfs:
      breadth_first(writer, chunks, m);
      break;
    case Kind::one_f_one_b:
      one_f_one_b(writer, p - r, m);
      break;
    case Kind::eager_one_f_one_b:
      one_f_one_b(writer, 2 * (p - r) - 1, m);
      break;
    case Kind::zb_h1:
      zb_h1(writer, r, p, m);
      break;
    case Kind::interleaved:
    case Kind::interleaved_zero_bubble:
      interleaved(writer, r, p, chunks, m, traits_of(schedule).splits_backward);
      break;
    case Kind::zbv:
      zb_v(writer, r, p, m);
      break;
    case Kind::dual_pipe_v:
      dual_pipe_v(writer, r, p, m);
      break;
  }
  return writer.take(microbatches);
}

}  // namespace

ActionLists compute_orders(Kind schedule, const StageMap& map, int microbatches, Pairs pairs) {
  require_fits(schedule, map);
  ActionLists lists;
  for (const PipelineRank rank : map.each_rank())
    lists.push_back(compute_order(schedule, map, rank, microbatches));
  return pairs == Pairs::together ? lists : with_pairs_apart(std::move(lists));
}

ActionLists with_pairs_apart(ActionLists lists) {
  for (ActionList& list : lists)
    for (Action& action : list) action.overlaps_next = false;
  return lists;
}

}  // namespace tessera::schedule
