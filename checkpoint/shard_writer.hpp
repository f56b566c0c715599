// Writes one shard file: libhdf5 lays it out, plain writes fill it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "manifest.hpp"
#include "shard_plan.hpp"

namespace tessera::checkpoint {

/// Creates `path` with a dataset for each piece and both tables, writes and flushes it. `tensors` gives the numbers of
/// the tensors; `coord_name` stands in the attributes. Error(checkpoint or environment); a partly written file is left
/// to the caller, who drops the whole folder.
ShardRecord write_shard(const std::filesystem::path& path, const std::string& coord_name, std::vector<Piece> pieces,
                        std::span<const TensorInfo> tensors);

/// The dataset that holds the `number`-th box (from 0) of a tensor in one file: "model/x", "model/x#1", ...
std::string dataset_name(const std::string& tensor, std::int64_t number);

}  // namespace tessera::checkpoint
