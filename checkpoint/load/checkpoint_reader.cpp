// SPDX-License-Identifier: Apache-2.0
#include "load/checkpoint_reader.hpp"

#include <algorithm>

#include "tessera/base/box.hpp"
#include "tessera/base/convert.hpp"
#include "tessera/base/error.hpp"

namespace tessera::checkpoint {

CheckpointReader::Impl::Impl(std::filesystem::path step_folder, Manifest read)
    : folder(std::move(step_folder)), manifest(std::move(read)) {
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i)
    numbers[manifest.tensors[i].name] = static_cast<std::int64_t>(i);
}

std::int64_t CheckpointReader::Impl::number_of(std::string_view name) const {
  const auto at = numbers.find(name);
  return at == numbers.end() ? -1 : at->second;
}

void CheckpointReader::Impl::check(const TensorSlice& slice) const {
  const std::int64_t number = number_of(slice.name);
  require(number >= 0, ExitCode::usage, "checkpoint {} holds no tensor {}", folder.string(),
          slice.name);
  const TensorInfo& stored = manifest.tensors[static_cast<std::size_t>(number)];
  require(stored.shape == slice.global_shape, ExitCode::usage,
          "tensor {} has shape {} in checkpoint {}, not {}", slice.name, to_string(stored.shape),
          folder.string(), to_string(slice.global_shape));
  require(convertible(stored.dtype, slice.dtype), ExitCode::usage,
          "tensor {} is {} in checkpoint {} and cannot be converted to {}", slice.name,
          name_of(stored.dtype), folder.string(), name_of(slice.dtype));
  TESSERA_EXPECT(lies_in(slice.box, slice.global_shape), "box {} extends beyond tensor {}",
                 to_string(slice.box), slice.name);
}

std::vector<Want> CheckpointReader::Impl::wants_of(std::span<const SliceView> wanted) const {
  std::vector<Want> wants;
  for (const SliceView& view : wanted) {
    const std::int64_t number = number_of(view.slice.name);
    if (number < 0 || element_count(view.slice.box) == 0) continue;
    check(view.slice);
    wants.push_back({number, &view});
  }
  std::stable_sort(wants.begin(), wants.end(),
                   [](const Want& a, const Want& b) { return a.tensor < b.tensor; });
  return wants;
}

std::shared_ptr<const ShardTables> CheckpointReader::Impl::tables(const File& file,
                                                                  std::size_t shard) {
  const std::lock_guard lock(mutex_);
  auto& known = tables_[shard];
  if (!known)
    known = std::make_shared<const ShardTables>(
        read_tables(file, manifest.shards[shard], manifest.tensors));
  return known;
}

void CheckpointReader::Impl::forget_tables() {
  const std::lock_guard lock(mutex_);
  tables_.clear();
}

void CheckpointReader::Impl::fill(std::span<const SliceView> wanted) {
  std::vector<Want> wants = wants_of(wanted);
  for (std::size_t s = 0; s < manifest.shards.size(); ++s) {
    const ShardRecord& shard = manifest.shards[s];
    if (std::none_of(wants.begin(), wants.end(),
                     [&](const Want& want) { return shard.may_hold(want.tensor); }))
      continue;
    const File file = File::open_to_read(folder / shard.name, ExitCode::checkpoint);
    const auto known = tables(file, s);
    load_shard(file, known->boxes, known->checksums, manifest.tensors, wants);
  }
  for (const Want& want : wants) {
    require(want.filled.elements() == element_count(want.view->slice.box), ExitCode::checkpoint,
            "{} is damaged (its files have {} of the {} requested elements of {})", folder.string(),
            want.filled.elements(), element_count(want.view->slice.box), want.view->slice.name);
    require(want.filled.makes_up(want.view->slice.box), ExitCode::checkpoint,
            "{} is damaged (its files have some elements of {} twice, and lack others)",
            folder.string(), want.view->slice.name);
  }
}

CheckpointReader::CheckpointReader(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

const std::filesystem::path& CheckpointReader::folder() const { return impl_->folder; }
std::int64_t CheckpointReader::step() const { return impl_->manifest.step; }
const std::string& CheckpointReader::extra() const { return impl_->manifest.extra; }
const std::string& CheckpointReader::uuid() const { return impl_->manifest.uuid; }
const std::string& CheckpointReader::mesh() const { return impl_->manifest.mesh; }
const std::string& CheckpointReader::config_toml() const { return impl_->manifest.config_toml; }
const std::vector<TensorInfo>& CheckpointReader::tensors() const { return impl_->manifest.tensors; }

const TensorInfo* CheckpointReader::find(std::string_view name) const {
  const std::int64_t number = impl_->number_of(name);
  return number < 0 ? nullptr : &impl_->manifest.tensors[static_cast<std::size_t>(number)];
}

std::string CheckpointReader::description() const { return "checkpoint " + folder().string(); }

void CheckpointReader::fill(std::span<const SliceView> wanted) const {
  impl_->fill(wanted);
  impl_->forget_tables();
}

void CheckpointReader::read(const TensorSlice& wanted, void* data) const {
  impl_->check(wanted);
  const SliceView view{wanted, data};
  impl_->fill({&view, 1});
}

}  // namespace tessera::checkpoint
