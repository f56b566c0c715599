// SPDX-License-Identifier: Apache-2.0
#include "tessera/checkpoint/load.hpp"

#include <set>
#include <vector>

#include "format/collective.hpp"
#include "format/tensor_table.hpp"
#include "tessera/base/error.hpp"
#include "tessera/comm/agreement.hpp"

namespace tessera::checkpoint {
namespace {

constexpr std::size_t kMostLines = 20;

/// Lines of one severity.
class Differences {
 public:
  void add(std::string_view kind, const std::string& name, const std::string& what) {
    if (++count_ <= kMostLines) lines_ += fmt::format("\n  {:<8} {}  {}", kind, name, what);
  }
  std::size_t count() const { return count_; }
  std::string table() const {
    return count_ <= kMostLines ? lines_
                                : lines_ + fmt::format("\n  and {} more", count_ - kMostLines);
  }

 private:
  std::size_t count_ = 0;
  std::string lines_;
};

struct Sorted {
  Differences errors, warnings;
  void add(Policy policy, std::string_view kind, const std::string& name, const std::string& what) {
    if (policy == Policy::strict) errors.add(kind, name, what);
    if (policy == Policy::warn) warnings.add(kind, name, what);
  }
};

/// Compares what the source has with what some rank wants, but for what the options omit.
void check_fit(const WeightSource& source, const TensorTable& wanted, const LoadOptions& options) {
  require(wanted.conflict().empty(), ExitCode::usage, "cannot load: {}", wanted.conflict());
  Sorted found;
  for (const TensorInfo& stored : source.tensors()) {
    if (options.leaves_out(stored.name)) continue;
    const auto want = wanted.rows().find(stored.name);
    if (want == wanted.rows().end()) {
      found.add(options.extra, "extra", stored.name, to_string(stored));
      continue;
    }
    const std::string misfit = source.misfit({stored.name, want->second.dtype, want->second.shape});
    if (!misfit.empty()) found.add(options.differing, "differs", stored.name, misfit);
  }
  for (const TensorInfo& want : wanted.tensors())
    if (!source.find(want.name))
      found.add(options.missing, "missing", want.name, source.misfit(want));
  require(found.errors.count() == 0, source.misfit_kind(),
          "{} does not fit this job; use the configuration with which it was written. A run that "
          "trains may exclude tensors (checkpoint.exclude_from_loading, "
          "checkpoint.load_mismatch):{}",
          source.description(), found.errors.table());
  if (found.warnings.count() != 0 && options.log)
    options.log(
        fmt::format("{} lacks tensors of this job, or has unexpected ones; tensors without "
                    "a value keep the one that they have:{}",
                    source.description(), found.warnings.table()));
}

/// The tensors that any rank wants, on rank 0.
TensorTable wanted_by_all(comm::Communicator& control, std::span<const SliceView> wanted,
                          const LoadOptions& options) {
  TensorTable mine;
  for (const SliceView& view : wanted)
    if (!options.leaves_out(view.slice.name))
      mine.add(view.slice.name, {view.slice.dtype, view.slice.global_shape, 0});
  const std::string all = reduce_to_root(control, mine.to_text(), TensorTable::merge_texts);
  return control.rank() == 0 ? TensorTable::from_text(all) : TensorTable();
}

}  // namespace

void load(comm::Communicator& control, const WeightSource& source,
          std::span<const SliceView> wanted, const LoadOptions& options) {
  comm::on_all_ranks(control, [&] {
    if (options.accept) options.accept(source);
  });
  const TensorTable all = wanted_by_all(control, wanted, options);
  comm::on_rank_zero(control, [&] { return check_fit(source, all, options), std::string(); });
  comm::on_all_ranks(control, [&] {
    std::vector<SliceView> fitting;
    for (const SliceView& view : wanted)
      if (!options.leaves_out(view.slice.name) && source.fits(view.slice)) fitting.push_back(view);
    for (const SliceView& view : fitting)
      require(view.data != nullptr || element_count(view.slice.box) == 0, ExitCode::usage,
              "there is no memory to load {} into", view.slice.name);
    source.fill(fitting);
  });
}

}  // namespace tessera::checkpoint
