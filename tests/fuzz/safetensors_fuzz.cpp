// SPDX-License-Identifier: Apache-2.0
// A .safetensors file. An odd first byte: what follows up to a zero byte is the header's JSON, and
// its length is made.
#include "input.hpp"
#include "tessera/hf/safetensors.hpp"

using namespace tessera;

namespace {

constexpr std::int64_t kMostElements = 1 << 16;

void read_some(const hf::SafetensorsReader& reader) {
  for (const TensorInfo& entry : reader.tensors()) {
    if (element_count(entry.shape) > kMostElements) continue;
    std::vector<double> out(static_cast<std::size_t>(element_count(entry.shape)) + 1);
    reader.read_whole(entry.name, entry.dtype, out.data());
    if (entry.dtype == DType::f32 || entry.dtype == DType::bf16)
      reader.read_whole(entry.name, DType::f64, out.data());
    TensorSlice half{entry.name, entry.dtype, entry.shape, whole(entry.shape)};
    for (std::int64_t& extent : half.box.extent) extent /= 2;
    reader.read(half, out.data());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::InputFolder folder;
  fuzz::Front input(data, size);
  const bool made = input.number<std::uint8_t>() % 2 == 1;
  std::string bytes;
  if (made) {
    const std::string_view header = input.until('\0');
    const std::uint64_t header_bytes = header.size();
    bytes.assign(reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes);
    bytes += header;
  }
  bytes += input.rest();
  const auto file = folder.put("model.safetensors", bytes);
  fuzz::takes({ExitCode::data}, [&] { read_some(hf::SafetensorsReader(file)); });
  return 0;
}
