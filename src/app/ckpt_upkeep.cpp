// SPDX-License-Identifier: Apache-2.0
#include "ckpt_upkeep.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "ckpt_folders.hpp"
#include "tessera/base/error.hpp"
#include "tessera/base/json.hpp"
#include "tessera/checkpoint/compare.hpp"
#include "tessera/checkpoint/reshard.hpp"

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

std::string what_is(const std::optional<TensorInfo>& tensor) {
  return tensor ? fmt::format("{} [{}]", name_of(tensor->dtype), fmt::join(tensor->shape, ", "))
                : "not there";
}

void print(const checkpoint::TensorComparison& tensor) {
  if (!tensor.a || !tensor.b || tensor.a->dtype != tensor.b->dtype ||
      tensor.a->shape != tensor.b->shape)
    std::cout << fmt::format("{}: {} | {}\n", tensor.name, what_is(tensor.a), what_is(tensor.b));
  if (tensor.differing > 0)
    std::cout << fmt::format("{}: {} of {} elements differ, by at most {:.6g} (relative {:.3g})\n",
                             tensor.name, tensor.differing, tensor.elements, tensor.max_abs,
                             tensor.max_rel);
}

/// The members of two JSON objects that are not equal.
std::size_t print_states(const std::string& a, const std::string& b) {
  const auto of_a = parse_valid_json(a), of_b = parse_valid_json(b);
  const auto text = [](const nlohmann::json& of, const std::string& key) {
    return of.is_object() && of.contains(key) ? json_text(of[key]) : "not there";
  };
  auto keys = of_a;
  if (of_a.is_object() && of_b.is_object()) keys.update(of_b);
  std::size_t differing = 0;
  for (const auto& [key, value] : keys.items())
    if (const std::string in_a = text(of_a, key), in_b = text(of_b, key); in_a != in_b) {
      std::cout << fmt::format("state, {}: {} | {}\n", key, in_a, in_b);
      ++differing;
    }
  return differing;
}

}  // namespace

int diff_checkpoints(const std::string& a, const std::string& b) {
  const auto self = comm::make_self_communicator("checkpoints");
  const auto of_a = checkpoint::open(*self, newest_of(a)),
             of_b = checkpoint::open(*self, newest_of(b));
  std::size_t differing = 0, all = 0;
  if (of_a.step() != of_b.step())
    std::cout << fmt::format("step: {} | {}\n", of_a.step(), of_b.step());
  const std::size_t members = print_states(of_a.extra(), of_b.extra());
  checkpoint::compare(of_a, of_b, [&](const checkpoint::TensorComparison& tensor) {
    print(tensor);
    differing += !tensor.is_equal();
    ++all;
  });
  const bool equal = differing == 0 && members == 0 && of_a.step() == of_b.step();
  std::cout << fmt::format("{} and {}: {}\n", of_a.folder().string(), of_b.folder().string(),
                           equal ? fmt::format("equal, each bit of {} tensors", all)
                                 : fmt::format("{} of {} tensors differ", differing, all));
  return equal ? 0 : 1;
}

int prune_checkpoints(const std::string& argument, const checkpoint::PruneOptions& options,
                      bool dry_run) {
  const fs::path folder = checkpoint_folder_of(argument);
  const auto removals = checkpoint::plan_prune(folder, options);
  for (const auto& removal : removals)
    std::cout << fmt::format("{} {} ({})\n", dry_run ? "would remove" : "removing",
                             removal.path.string(), removal.why);
  if (!dry_run) checkpoint::prune(folder, removals);
  std::cout << fmt::format("{}: {} {}\n", folder.string(), removals.size(),
                           dry_run ? "to remove" : "removed");
  return 0;
}

int reshard_checkpoint(const std::string& from, const std::string& to, int files) {
  require_target(to);
  const fs::path made = checkpoint::reshard(newest_of(from), {to, files});
  const auto summary = checkpoint::summarize(made);
  std::cout << fmt::format("{}: {} tensors in {} files\n", made.string(), summary.tensors.size(),
                           summary.files);
  return 0;
}

}  // namespace tessera::app
