// SPDX-License-Identifier: Apache-2.0
#include "fit.hpp"

#include <set>

#include "tessera/base/box.hpp"
#include "tessera/base/convert.hpp"
#include "tessera/base/error.hpp"

namespace tessera::checkpoint {
namespace {

constexpr std::size_t kMostLines = 20;

std::string what_is(DType dtype, const Shape& shape) {
  return fmt::format("{} {}", name_of(dtype), to_string(shape));
}

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

}  // namespace

void check_fit(const std::filesystem::path& folder, const std::vector<TensorInfo>& stored,
               const TensorTable& wanted, const LoadOptions& options) {
  require(wanted.conflict().empty(), ExitCode::usage, "cannot load: {}", wanted.conflict());
  Sorted found;
  std::set<std::string_view> there;
  for (const TensorInfo& tensor : stored) {
    there.insert(tensor.name);
    if (is_left_out(options, tensor.name)) continue;
    const auto want = wanted.rows().find(tensor.name);
    if (want == wanted.rows().end())
      found.add(options.extra, "extra", tensor.name, what_is(tensor.dtype, tensor.shape));
    else if (want->second.shape != tensor.shape || !convertible(tensor.dtype, want->second.dtype))
      found.add(options.differing, "differs", tensor.name,
                fmt::format("stored {}, wanted {}", what_is(tensor.dtype, tensor.shape),
                            what_is(want->second.dtype, want->second.shape)));
  }
  for (const auto& [name, row] : wanted.rows())
    if (!there.contains(name))
      found.add(options.missing, "missing", name, what_is(row.dtype, row.shape));
  require(found.errors.count() == 0, ExitCode::usage,
          "checkpoint {} does not fit this job; use the configuration with which it was written, "
          "or exclude tensors "
          "(checkpoint.exclude_from_loading, checkpoint.load_mismatch):{}",
          folder.string(), found.errors.table());
  if (found.warnings.count() != 0 && options.log)
    options.log(fmt::format("checkpoint {} lacks tensors of this job, or has unexpected ones:{}",
                            folder.string(), found.warnings.table()));
}

}  // namespace tessera::checkpoint
