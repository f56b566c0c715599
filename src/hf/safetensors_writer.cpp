// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>

#include "safetensors_header.hpp"
#include "tessera/base/atomic_file.hpp"
#include "tessera/base/box.hpp"
#include "tessera/hf/safetensors.hpp"

namespace tessera::hf {

struct SafetensorsWriter::Impl {
  std::filesystem::path path;
  std::vector<PlacedEntry> entries;  // in the file's order
  std::map<std::string, std::size_t, std::less<>> numbers;
  std::unique_ptr<std::atomic<std::int64_t>[]> written;  // elements of each entry
  std::optional<AtomicFile> file;

  void place(std::vector<TensorInfo> tensors, const std::map<std::string, std::string>& metadata);
};

void SafetensorsWriter::Impl::place(std::vector<TensorInfo> tensors,
                                    const std::map<std::string, std::string>& metadata) {
  for (TensorInfo& tensor : tensors) {
    const auto bytes = checked_bytes(tensor.shape, tensor.dtype);
    TESSERA_EXPECT(bytes && tensor.name != "__metadata__", "tensor \"{}\" {}", tensor.name,
                   to_string(tensor.shape));
    entries.push_back({std::move(tensor), 0, *bytes});
  }
  const std::string header = place_safetensors(entries, metadata);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool is_new = numbers.emplace(entries[i].entry.name, i).second;
    TESSERA_EXPECT(is_new, "tensor \"{}\" is given twice", entries[i].entry.name);
  }
  written = std::make_unique<std::atomic<std::int64_t>[]>(entries.size());
  file.emplace(path, ExitCode::environment);
  file->file().write(header.data(), header.size(), 0);
  file->file().resize(entries.empty() ? static_cast<std::int64_t>(header.size())
                                      : entries.back().begin + entries.back().bytes);
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<TensorInfo> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->place(std::move(tensors), metadata);
}

SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(std::string_view name, std::int64_t first, std::int64_t count,
                              const void* data) {
  const auto at = impl_->numbers.find(name);
  TESSERA_EXPECT(at != impl_->numbers.end(), "no tensor \"{}\" was announced", name);
  const PlacedEntry& placed = impl_->entries[at->second];
  TESSERA_EXPECT(first >= 0 && count >= 0 && first + count <= element_count(placed.entry.shape),
                 "elements {}..{} of \"{}\" {}", first, first + count, name,
                 to_string(placed.entry.shape));
  const auto width = static_cast<std::int64_t>(size_of(placed.entry.dtype));
  impl_->file->file().write(data, static_cast<std::size_t>(count * width),
                            placed.begin + first * width);
  impl_->written[at->second] += count;
}

void SafetensorsWriter::finish() {
  TESSERA_EXPECT(impl_->file.has_value(), "finish() was called twice");
  for (std::size_t i = 0; i < impl_->entries.size(); ++i) {
    const TensorInfo& entry = impl_->entries[i].entry;
    require(impl_->written[i] == element_count(entry.shape), ExitCode::data,
            "{} of {} elements of \"{}\" were written to {}; the file is not kept",
            impl_->written[i].load(), element_count(entry.shape), entry.name, impl_->path.string());
  }
  impl_->file->commit();
  impl_->file.reset();
}

}  // namespace tessera::hf
