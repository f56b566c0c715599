// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "nccl_versions.hpp"
#include "tessera/comm/device.hpp"

namespace tessera::comm {
namespace {

/// Of a number such as 22809.
std::string text_of(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string nccl_version() {
  const NcclVersions versions = nccl_versions();
  if (versions.built == 0) return {};
  return fmt::format("{}, built with {}", text_of(versions.loaded), text_of(versions.built));
}

}  // namespace tessera::comm
