// SPDX-License-Identifier: Apache-2.0
// The implementation of CheckpointReader.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/manifest.hpp"
#include "load/shard_loader.hpp"
#include "tessera/checkpoint/checkpoint_reader.hpp"

namespace tessera::checkpoint {

struct CheckpointReader::Impl {
  Impl(std::filesystem::path step_folder, Manifest read);

  std::filesystem::path folder;
  Manifest manifest;
  std::unordered_map<std::string_view, std::int64_t> numbers;  // of manifest.tensors

  /// -1 when there is no such tensor.
  std::int64_t number_of(std::string_view name) const;
  /// Throws unless slice is a box of a stored tensor and of a type into which that converts.
  void check(const TensorSlice& slice) const;
  /// Fills all wanted boxes; those of tensors that are not stored are left as they are.
  void fill(std::span<const SliceView> wanted);
  /// Lets go of the box tables that were kept for further reads.
  void forget_tables();

 private:
  std::vector<Want> wants_of(std::span<const SliceView> wanted) const;
  std::shared_ptr<const ShardTables> tables(const File& file, std::size_t shard);
  std::mutex mutex_;
  std::map<std::size_t, std::shared_ptr<const ShardTables>> tables_;
};

}  // namespace tessera::checkpoint
