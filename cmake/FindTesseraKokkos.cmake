# SPDX-License-Identifier: Apache-2.0
# Kokkos from a module, Spack, or Debian's libtrilinos-kokkos-dev (whose exported target names a wrong include directory).
# Defines the target tessera::kokkos.
find_package(Kokkos CONFIG QUIET)
if(Kokkos_FOUND AND NOT "SERIAL" IN_LIST Kokkos_DEVICES)
  message(FATAL_ERROR "Kokkos in ${Kokkos_DIR} lacks the execution space Serial; build Kokkos with -DKokkos_ENABLE_SERIAL=ON")
endif()
if(Kokkos_FOUND AND NOT TARGET tessera::kokkos)
  add_library(tessera::kokkos INTERFACE IMPORTED)
  if(EXISTS "/usr/include/trilinos/Kokkos_Core.hpp" AND "${Kokkos_DIR}" MATCHES "/usr/(share|lib).*trilinos|/usr/lib.*cmake/Kokkos")
    find_library(TesseraKokkos_CORE trilinos_kokkoscore REQUIRED)
    target_include_directories(tessera::kokkos SYSTEM INTERFACE /usr/include/trilinos)
    target_link_libraries(tessera::kokkos INTERFACE "${TesseraKokkos_CORE}")
  else()
    target_link_libraries(tessera::kokkos INTERFACE Kokkos::kokkos)
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(TesseraKokkos REQUIRED_VARS Kokkos_DIR VERSION_VAR Kokkos_VERSION)
