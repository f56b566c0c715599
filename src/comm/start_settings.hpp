// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tessera::comm {

/// Settings of Open MPI that shorten MPI_Init, in the environment while this object exists.
/// Afterwards they are removed: an mpirun that this process starts may use other nodes.
///
/// - Ranks that share one node probe no fabric for messages (the MTLs psm, psm2 and ofi). Finding
///   none takes them 0.2 s, mostly asleep.
/// - A process without a launcher starts no daemon of its own (orted): 0.06 s. Without a daemon,
///   all such processes of a user on a node would share one folder. One that ends removes it, while
///   another makes it. So they make none.
///
/// A variable that is set stays, and OMPI_MCA_pml or OMPI_MCA_mtl keeps the choice of fabrics.
/// Where the launcher does not say how many ranks there are, or on how many nodes, nothing is set.
/// Other implementations of MPI read none of them. Construct before there are other threads, and
/// destroy right after MPI_Init: setenv() and unsetenv() are not thread-safe.
class StartSettings {
 public:
  StartSettings();
  ~StartSettings();
  StartSettings(const StartSettings&) = delete;
  StartSettings& operator=(const StartSettings&) = delete;

 private:
  void set(const char* name, const char* value);

  std::vector<std::string> names_;  ///< what this object has set
};

}  // namespace tessera::comm
