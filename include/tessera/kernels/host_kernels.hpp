// SPDX-License-Identifier: Apache-2.0
// Which of the host's two sets of kernels runs: the vector files, or their form in Kokkos.
#pragma once

#include <string>
#include <string_view>

namespace tessera::kernels {

/// Makes all later kernels on the host those of `wanted`: native (the vector files), kokkos, or
/// auto (what TESSERA_KERNELS names; without it native, or kokkos on a processor that has no vector
/// files). Where no choice was made, the first kernel chooses auto. No kernel may run meanwhile.
/// Throws Error(usage) for another word, Error(environment) for native without vector files.
void choose_host_kernels(std::string_view wanted);

/// The chosen set: "avx2", or as "kokkos 3.4.1 (Serial)". Chooses auto where no choice was made.
std::string host_kernels();

/// As "3.4.1 (Serial)": the version of Kokkos and the execution space of its kernels.
std::string kokkos_description();

}  // namespace tessera::kernels
