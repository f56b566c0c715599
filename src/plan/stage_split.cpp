// SPDX-License-Identifier: Apache-2.0
#include "tessera/plan/stage_split.hpp"

#include <algorithm>
#include <limits>

#include "tessera/base/error.hpp"
#include "tessera/base/suggest.hpp"

namespace tessera::plan {
namespace {

using model::ModelSpec;

int size_of(const ModelSpec& model) { return static_cast<int>(model.cells.size()); }

/// A stage may begin with this cell.
void require_boundary(const ModelSpec& model, std::int64_t cell) {
  const model::CellSpec& first = model.cells[static_cast<std::size_t>(cell)];
  require(first.bound.empty(), ExitCode::usage, "no pipeline stage can begin with {}: {}",
          first.name, first.bound);
}

/// From the first cells of stages 1, 2, ...
StageRanges ranges_of(const ModelSpec& model, const std::vector<int>& cuts) {
  StageRanges ranges;
  std::int64_t begin = 0;
  for (const int cut : cuts) {
    require_boundary(model, cut);
    ranges.push_back({begin, cut - begin});
    begin = cut;
  }
  ranges.push_back({begin, size_of(model) - begin});
  return ranges;
}

/// "layer.3" -> "layers.3"; "layers.3.attention.wk" -> "layers.3.attention.wqkv": what a cell
/// multiplies by is a name for it.
std::string canonical(std::string name) {
  if (name.ends_with(".weight")) name.resize(name.size() - 7);
  if (name.starts_with("layer.")) name.insert(5, "s");
  for (const char* part : {".attention.wq", ".attention.wk", ".attention.wv"})
    if (name.ends_with(part)) return name.substr(0, name.size() - 2) + "wqkv";
  for (const char* part :
       {".attention.wq_a", ".attention.wkv_a", ".attention.wq_b", ".attention.wkv_b"})
    if (name.ends_with(part))
      return name.substr(0, name.rfind('.')) + ".wqkv" + name.substr(name.size() - 2);
  for (const char* part :
       {".feed_forward.w1", ".feed_forward.w3", ".shared_experts.w1", ".shared_experts.w3"})
    if (name.ends_with(part)) return name.substr(0, name.size() - 2) + "w13";
  return name;
}

/// The cells that a name stands for: one, or all of a block or of a part of one.
Range cells_named(const ModelSpec& model, const std::string& typed, const char* key) {
  const std::string name = canonical(typed);
  Range range;
  for (int i = 0; i < size_of(model); ++i) {
    const std::string& cell = model.cells[static_cast<std::size_t>(i)].name;
    if (cell != name && !cell.starts_with(name + ".")) continue;
    if (range.size == 0) range.begin = i;
    ++range.size;
  }
  if (range.size > 0) return range;
  std::vector<std::string> known;
  for (const model::UnitSpec& unit : model.units) known.push_back(unit.name);
  for (const model::CellSpec& cell : model.cells) known.push_back(cell.name);
  fail(ExitCode::usage,
       "{}: \"{}\" is not a block or cell of {}{} (blocks are layers.0 to layers.{}; cells of one "
       "are, e.g., {}, {})",
       key, typed, model.name, did_you_mean(typed, known), model.dimensions.layers - 1,
       model.cells[1].name, model.cells[2].name);
}

/// first[i]: whether a stage may begin with cell i.
std::vector<bool> places(const ModelSpec& model, Granularity granularity) {
  std::vector<bool> first(model.cells.size(), granularity == Granularity::cells);
  for (const model::UnitSpec& unit : model.units)
    first[static_cast<std::size_t>(unit.begin)] = true;
  for (std::size_t i = 0; i < first.size(); ++i)
    first[i] = first[i] && model.cells[i].bound.empty();
  return first;
}

/// The greatest cost of a stage in the best split: by dynamic programming over (stage, first cell
/// after it).
double least_maximum(const std::vector<double>& before, const std::vector<bool>& first,
                     int stages) {
  const std::size_t cells = first.size();
  std::vector<double> best(before.begin() + 1, before.end());  // best[i]: cells 0..i in one stage
  for (int stage = 1; stage < stages; ++stage) {
    std::vector<double> next(cells, std::numeric_limits<double>::infinity());
    for (std::size_t end = 1; end < cells; ++end)
      for (std::size_t begin = 1; begin <= end; ++begin)
        if (first[begin])
          next[end] =
              std::min(next[end], std::max(best[begin - 1], before[end + 1] - before[begin]));
    best = std::move(next);
  }
  return best.back();
}

/// Among the splits that keep every stage within a limit, the one with the least across its cuts.
class LeastTraffic {
 public:
  LeastTraffic(const ModelSpec& model, const std::vector<double>& before,
               const std::vector<bool>& first, double limit)
      : model_(model), before_(before), first_(first), limit_(limit) {}

  std::vector<int> cuts(int stages) {
    moved_.assign(first_.size(), none);
    moved_[0] = 0;
    for (int stage = 1; stage < stages; ++stage) add_stage();
    std::size_t last = 0;
    double least = none;
    for (std::size_t begin = 0; begin < first_.size(); ++begin)
      if (before_.back() - before_[begin] <= limit_ && moved_[begin] < least)
        least = moved_[last = begin];
    std::vector<int> cuts(from_.size());
    for (std::size_t stage = from_.size(); stage-- > 0; last = from_[stage][last])
      cuts[stage] = static_cast<int>(last);
    return cuts;
  }

 private:
  static constexpr double none = std::numeric_limits<double>::infinity();

  void add_stage() {
    std::vector<double> moved(first_.size(), none);
    std::vector<std::size_t> from(first_.size(), 0);
    for (std::size_t begin = 1; begin < first_.size(); ++begin) {
      if (!first_[begin]) continue;
      const double crossing = static_cast<double>(crossing_features(model_.cells[begin]));
      for (std::size_t previous = 0; previous < begin; ++previous) {
        if (before_[begin] - before_[previous] > limit_ ||
            moved_[previous] + crossing >= moved[begin])
          continue;
        moved[begin] = moved_[previous] + crossing;
        from[begin] = previous;
      }
    }
    moved_ = std::move(moved);
    from_.push_back(std::move(from));
  }

  const ModelSpec& model_;
  const std::vector<double>& before_;
  const std::vector<bool>& first_;
  double limit_;
  std::vector<double> moved_;                   ///< by the first cell of the newest stage
  std::vector<std::vector<std::size_t>> from_;  ///< and the first cell of the stage before it
};

}  // namespace

StageRanges split_by_layers(const ModelSpec& model, int stages, std::int64_t first_less,
                            std::int64_t last_less) {
  const std::int64_t blocks = model.dimensions.layers, total = blocks + first_less + last_less;
  const auto refuse = [&] {
    fail(ExitCode::usage,
         "{} pipeline stages are more than {} has to share: {} layers, the embedding counted as {} "
         "and the output as "
         "{}; "
         "choose at most {}, or pipeline_parallel_split = \"balanced_sublayer\"",
         stages, model.name, blocks, first_less, last_less, total);
  };
  if (stages > 1 && stages > total) refuse();
  std::vector<int> cuts;
  std::int64_t next_block = 0;
  for (int stage = 0; stage + 1 < stages; ++stage) {
    const std::int64_t share =
        total / stages + (stage < total % stages ? 1 : 0) - (stage == 0 ? first_less : 0);
    next_block += std::clamp<std::int64_t>(share, 0, blocks - next_block);
    // unit 0 is the embedding
    const int cut = model.units[static_cast<std::size_t>(next_block) + 1].begin;
    if (!cuts.empty() && cut == cuts.back()) refuse();
    cuts.push_back(cut);
  }
  return ranges_of(model, cuts);
}

StageRanges split_at(const ModelSpec& model, const std::vector<std::string>& names) {
  constexpr const char* key = "parallelism.pipeline_parallel_split_points";
  std::vector<int> cuts;
  for (const std::string& name : names) {
    const int cut = static_cast<int>(cells_named(model, name, key).begin);
    require(cut > (cuts.empty() ? 0 : cuts.back()), ExitCode::usage,
            "{}: a stage that begins with {} would follow one without cells; name the first cell "
            "of every stage but "
            "the first, in the "
            "order of the model",
            key, name);
    cuts.push_back(cut);
  }
  return ranges_of(model, cuts);
}

StageRanges split_by_modules(const ModelSpec& model,
                             const std::vector<std::vector<std::string>>& parts) {
  constexpr const char* key = "parallelism.module_fqns_per_model_part";
  StageRanges ranges;
  std::int64_t next = 0;
  for (const std::vector<std::string>& part : parts) {
    const std::int64_t begin = next;
    for (const std::string& name : part) {
      const Range named = cells_named(model, name, key);
      require(named.begin == next, ExitCode::usage,
              "{}: {} is listed where {} is expected; list every module once, in the order of the "
              "model",
              key, name,
              next < size_of(model) ? model.cells[static_cast<std::size_t>(next)].name
                                    : "nothing more");
      next = named.end();
    }
    require(next > begin, ExitCode::usage, "{}: stage {} has no modules; give it one", key,
            ranges.size());
    require_boundary(model, begin);
    ranges.push_back({begin, next - begin});
  }
  require(next == size_of(model), ExitCode::usage,
          "{}: {} and what follows it is on no stage; list every module once", key,
          next < size_of(model) ? model.cells[static_cast<std::size_t>(next)].name : "");
  return ranges;
}

StageRanges split_balanced(const ModelSpec& model, int stages, std::span<const double> costs,
                           Granularity granularity) {
  const std::vector<bool> first = places(model, granularity);
  const auto possible = std::ranges::count(first, true);
  require(stages <= possible, ExitCode::usage,
          "{} pipeline stages are more than the {} places where {} can be cut; choose at most that "
          "many",
          stages, possible, model.name);
  std::vector<double> before{0};  // before[i]: cost of cells 0..i-1
  for (const double cost : costs) before.push_back(before.back() + cost);
  const double limit = least_maximum(before, first, stages) * (1 + 1e-9);
  return ranges_of(model, LeastTraffic(model, before, first, limit).cuts(stages));
}

std::vector<double> flops_of_cells(const ModelSpec& model, std::int64_t seq) {
  std::vector<double> flops;
  for (const model::CellSpec& cell : model.cells)
    flops.push_back(model::forward_flops(model, cell, seq));
  return flops;
}

std::int64_t crossing_features(const model::CellSpec& cell) {
  std::int64_t features = 0;
  for (const model::Live& live : cell.live) features += element_count(live.features);
  return features;
}

}  // namespace tessera::plan
