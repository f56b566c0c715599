// SPDX-License-Identifier: Apache-2.0
#include "backend.hpp"

#include <array>

#include "tessera/base/error.hpp"

namespace tessera::kernels {
namespace {

using Registry = std::array<const Backend*, c10::COMPILE_TIME_MAX_DEVICE_TYPES>;

Registry& registry() {
  static Registry backends = [] {
    Registry r{};
    r[static_cast<std::size_t>(c10::DeviceType::CPU)] = &host_backend;
    return r;
  }();
  return backends;
}

/// Distance between rows when all leading dims can be walked with one stride; -1 otherwise.
std::int64_t common_row_stride(const at::Tensor& x) {
  if (x.numel() == 0 || x.stride(-1) != 1) return -1;
  std::int64_t stride = -1, expected = -1;
  for (std::int64_t dim = x.dim() - 2; dim >= 0; --dim) {
    if (x.size(dim) == 1) continue;
    if (stride < 0) stride = expected = x.stride(dim);
    if (x.stride(dim) != expected) return -1;
    expected *= x.size(dim);
  }
  return stride < 0 ? x.size(-1) : stride;
}

}  // namespace

RowsOf rows_of(const at::Tensor& x) {
  const std::int64_t width = x.size(-1);
  const std::int64_t stride = common_row_stride(x);
  const std::int64_t rows = width == 0 ? 0 : x.numel() / width;
  if (stride >= 0) return {x, rows, width, stride};
  return {x.contiguous(), rows, width, width};
}

void register_backend(c10::DeviceType device, const Backend& backend) {
  registry()[static_cast<std::size_t>(device)] = &backend;
}

const Backend& backend_of(const at::Tensor& tensor) {
  const Backend* backend = registry()[static_cast<std::size_t>(tensor.device().type())];
  require(
      backend != nullptr, ExitCode::environment,
      "this build has no kernels for device {}; build with TESSERA_WITH_CUDA=ON or use the host",
      tensor.device().str());
  return *backend;
}

}  // namespace tessera::kernels
