// SPDX-License-Identifier: Apache-2.0
// What is known of a rank after its end: each rank of a job under `tessera launch` keeps it in a
// file, for the launcher to read at the end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tessera::comm {

/// Names the folder for the files of the ranks; set by `tessera launch`.
inline constexpr const char* kRankRecordsVariable = "TESSERA_RANK_RECORDS";

struct RankRecord {
  int rank = 0;
  std::int64_t step = 0;         ///< the last one that has ended; 0: none
  std::int64_t saved_step = -1;  ///< of the latest checkpoint; -1: none
  bool asked_to_end = false;  ///< has got a SIGTERM, as mpirun sends it to the ranks that are left
  bool ended = false;         ///< has left in good order
  int code = -1;              ///< that it has decided to end with; -1: none
};

/// Each does nothing where no record is kept. World begins and ends the record.
namespace rank_record {
void begin(int rank);
void note_step(std::int64_t step) noexcept;
void note_saved(std::int64_t step) noexcept;
/// May be called by a signal handler.
void note_asked_to_end() noexcept;
void note_code(int code) noexcept;
void end() noexcept;
}  // namespace rank_record

/// Has a rank made its file in the folder, with a record or, on a full file system, without one?
bool any_rank_began(const std::filesystem::path& folder);
/// The records in a folder, by rank.
std::vector<RankRecord> read_rank_records(const std::filesystem::path& folder);

}  // namespace tessera::comm
