// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "safetensors_header.hpp"
#include "tessera/base/box.hpp"
#include "tessera/base/convert.hpp"
#include "tessera/base/file.hpp"
#include "tessera/base/json_reader.hpp"
#include "tessera/hf/safetensors.hpp"

namespace tessera::hf {
namespace {

constexpr std::int64_t kWindowBytes = std::int64_t{4} << 20;
// a gap longer than this is cheaper to skip than to read
constexpr std::int64_t kWorthSkippingBytes = 64 << 10;
constexpr std::int64_t kIndexLimitBytes = 256 << 20;

std::filesystem::path plain_name(const JsonNode& node) {
  const std::string& name = node.string();
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    node.refuse("not a plain file name");
  return name;
}

}  // namespace

struct SafetensorsReader::Impl {
  struct Place {
    std::size_t file;
    std::int64_t begin;
  };
  std::vector<File> files;
  std::vector<TensorInfo> entries;  // sorted by name
  std::vector<Place> places;        // of entries
  std::map<std::string, std::string> metadata;

  void open_file(const std::filesystem::path& path);
  void open_folder(const std::filesystem::path& folder);
  void open_sharded(const std::filesystem::path& index);
  void add(const PlacedEntry& placed, std::size_t file);
  void sort();
  std::size_t number_of(std::string_view name) const;
  void check(const TensorInfo& entry, const TensorSlice& slice,
             const std::filesystem::path& path) const;
  void read(const TensorSlice& slice, void* out) const;
};

void SafetensorsReader::Impl::add(const PlacedEntry& placed, std::size_t file) {
  entries.push_back(placed.entry);
  places.push_back({file, placed.begin});
}

void SafetensorsReader::Impl::open_file(const std::filesystem::path& path) {
  files.push_back(File::open_to_read(path, ExitCode::data));
  SafetensorsHeader header = read_safetensors_header(files.back());
  metadata.merge(header.metadata);
  for (const PlacedEntry& placed : header.entries) add(placed, files.size() - 1);
}

/// The index says which file holds a tensor; what a file holds besides is not part of the model.
void SafetensorsReader::Impl::open_sharded(const std::filesystem::path& index) {
  const TextSource source{index, ExitCode::data};
  const nlohmann::json json =
      parse_json(read_text(index, kIndexLimitBytes, ExitCode::data), source);
  const JsonNode map = JsonNode(json, source)["weight_map"];
  std::map<std::string, std::vector<std::string>> names_of_file;
  for (const auto& [name, file] : map.object().items())
    names_of_file[plain_name(map[name])].push_back(name);
  for (const auto& [file, names] : names_of_file) {
    files.push_back(File::open_to_read(index.parent_path() / file, ExitCode::data));
    SafetensorsHeader header = read_safetensors_header(files.back());
    metadata.merge(header.metadata);
    std::map<std::string_view, const PlacedEntry*> there;
    for (const PlacedEntry& placed : header.entries) there[placed.entry.name] = &placed;
    for (const std::string& name : names) {
      if (!there.contains(name)) source.damaged(fmt::format("{} does not hold \"{}\"", file, name));
      add(*there[name], files.size() - 1);
    }
  }
}

void SafetensorsReader::Impl::open_folder(const std::filesystem::path& folder) {
  const auto index = folder / "model.safetensors.index.json";
  if (std::filesystem::exists(folder / "model.safetensors"))
    return open_file(folder / "model.safetensors");
  require(std::filesystem::exists(index), ExitCode::data,
          "no weights in {} (neither model.safetensors nor model.safetensors.index.json); give a "
          "Hugging Face folder or a "
          ".safetensors file",
          folder.string());
  open_sharded(index);
}

void SafetensorsReader::Impl::sort() {
  std::vector<std::size_t> order(entries.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return entries[a].name < entries[b].name; });
  std::vector<TensorInfo> sorted_entries;
  std::vector<Place> sorted_places;
  for (const std::size_t i : order) {
    sorted_entries.push_back(std::move(entries[i]));
    sorted_places.push_back(places[i]);
  }
  entries = std::move(sorted_entries);
  places = std::move(sorted_places);
}

/// entries.size() when there is no such tensor.
std::size_t SafetensorsReader::Impl::number_of(std::string_view name) const {
  const auto at = std::lower_bound(entries.begin(), entries.end(), name,
                                   [](const auto& e, auto n) { return e.name < n; });
  return at != entries.end() && at->name == name ? static_cast<std::size_t>(at - entries.begin())
                                                 : entries.size();
}

void SafetensorsReader::Impl::check(const TensorInfo& entry, const TensorSlice& slice,
                                    const std::filesystem::path& path) const {
  require(slice.global_shape == entry.shape, ExitCode::data,
          "tensor \"{}\" in {} has shape {}, not {}; use the matching model", entry.name,
          path.string(), to_string(entry.shape), to_string(slice.global_shape));
  require(convertible(entry.dtype, slice.dtype), ExitCode::data,
          "tensor \"{}\" in {} is {} and cannot be read as {}", entry.name, path.string(),
          name_of(entry.dtype), name_of(slice.dtype));
  TESSERA_EXPECT(lies_in(slice.box, entry.shape), "box {} of \"{}\"", to_string(slice.box),
                 entry.name);
}

void SafetensorsReader::Impl::read(const TensorSlice& slice, void* out) const {
  const std::size_t number = number_of(slice.name);
  require(number < entries.size(), ExitCode::data, "no tensor \"{}\" in {}", slice.name,
          files.empty() ? "an empty index" : files.front().path().string());
  const TensorInfo& entry = entries[number];
  const File& file = files[places[number].file];
  check(entry, slice, file.path());
  if (element_count(slice.box) == 0) return;
  const auto stored = static_cast<std::int64_t>(size_of(entry.dtype)),
             wanted = static_cast<std::int64_t>(size_of(slice.dtype));
  std::vector<std::byte> window;
  RunCursor cursor(slice.box, whole(entry.shape), slice.box);
  while (!cursor.done()) {
    // One read for as many runs as are close together.
    const std::int64_t begin = cursor.source();
    const bool sparse = (cursor.stride() - cursor.length()) * stored > kWorthSkippingBytes;
    const std::int64_t reach = sparse ? begin + cursor.length() : cursor.source_end();
    const std::int64_t end = std::min(reach, begin + kWindowBytes / stored);
    window.resize(static_cast<std::size_t>((end - begin) * stored));
    file.read(window.data(), window.size(), places[number].begin + begin * stored);
    while (!cursor.done() && cursor.source() < end) {
      const std::int64_t count = std::min(cursor.length(), end - cursor.source());
      require(convert(window.data() + (cursor.source() - begin) * stored, entry.dtype,
                      static_cast<std::byte*>(out) + cursor.target() * wanted, slice.dtype, count),
              ExitCode::data, "a value of tensor \"{}\" in {} does not fit into {}", slice.name,
              file.path().string(), name_of(slice.dtype));
      cursor.advance(count);
    }
  }
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& file_or_folder)
    : impl_(std::make_unique<Impl>()) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file_or_folder, ignored))
    impl_->open_folder(file_or_folder);
  else
    impl_->open_file(file_or_folder);
  impl_->sort();
}
SafetensorsReader::~SafetensorsReader() = default;
SafetensorsReader::SafetensorsReader(SafetensorsReader&&) noexcept = default;
SafetensorsReader& SafetensorsReader::operator=(SafetensorsReader&&) noexcept = default;

const std::vector<TensorInfo>& SafetensorsReader::tensors() const { return impl_->entries; }
const std::map<std::string, std::string>& SafetensorsReader::metadata() const {
  return impl_->metadata;
}

const TensorInfo* SafetensorsReader::find(std::string_view name) const {
  const std::size_t number = impl_->number_of(name);
  return number < impl_->entries.size() ? &impl_->entries[number] : nullptr;
}

void SafetensorsReader::read(const TensorSlice& slice, void* out) const { impl_->read(slice, out); }

void SafetensorsReader::read_whole(std::string_view name, DType dtype, void* out) const {
  const TensorInfo* entry = find(name);
  require(entry != nullptr, ExitCode::data, "no tensor \"{}\" in {}", name,
          impl_->files.empty() ? "an empty index" : impl_->files.front().path().string());
  impl_->read({std::string(name), dtype, entry->shape, whole(entry->shape)}, out);
}

}  // namespace tessera::hf
