// SPDX-License-Identifier: Apache-2.0
// How work takes its place in a stream, seen by the checker.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "device.hpp"

namespace tessera::cudart {

cudaError_t enqueue(Stream& stream, std::string what, std::span<const sim::Access> accesses,
                    sim::Work work);
cudaError_t run_at_once(Stream& stream, const std::string& what,
                        std::span<const sim::Access> accesses, const sim::Work& work);

/// The end of `stream` as it is now.
std::shared_ptr<Record> record(Stream& stream);
/// Later tasks of `stream` run after `record`. One that a capture has recorded takes the stream
/// into the capture.
cudaError_t wait(Stream& stream, const std::shared_ptr<Record>& record);

}  // namespace tessera::cudart
