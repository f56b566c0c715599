// SPDX-License-Identifier: Apache-2.0
#include "nccl_versions.hpp"

#include <link.h>
#include <nccl.h>

#include <string_view>

namespace tessera::comm {
namespace {

int note_nccl(dl_phdr_info* object, std::size_t, void* found) {
  const std::string_view path = object->dlpi_name ? object->dlpi_name : "";
  if (path.substr(path.rfind('/') + 1).starts_with("libnccl.so"))
    static_cast<std::vector<std::string>*>(found)->emplace_back(path);
  return 0;
}

}  // namespace

NcclVersions nccl_versions() {
  NcclVersions versions;
  versions.built = NCCL_VERSION_CODE;
  ncclGetVersion(&versions.loaded);
  dl_iterate_phdr(&note_nccl, &versions.libraries);
  return versions;
}

}  // namespace tessera::comm
