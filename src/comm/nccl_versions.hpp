// SPDX-License-Identifier: Apache-2.0
// Which NCCL a process has. A library of LibTorch's and one of the system can meet in it.
#pragma once

#include <string>
#include <vector>

namespace tessera::comm {

struct NcclVersions {
  int built = 0;   ///< of the header, 22809 for 2.28.9; 0 in a build without NCCL
  int loaded = 0;  ///< what the library in use says
  std::vector<std::string> libraries;  ///< paths of all NCCL libraries in this process
};
NcclVersions nccl_versions();

}  // namespace tessera::comm
