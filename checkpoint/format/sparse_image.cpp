// SPDX-License-Identifier: Apache-2.0
#include "format/sparse_image.hpp"

#include <algorithm>
#include <cstring>

#include "format/combined_writes.hpp"

namespace tessera::checkpoint {

/// visit(page number, first byte in the page, bytes of it, bytes done before).
template <class Visit>
void SparseImage::for_each_page(std::int64_t offset, std::size_t bytes, const Visit& visit) {
  for (std::size_t done = 0; done < bytes;) {
    const std::int64_t at = offset + static_cast<std::int64_t>(done), first = at % kPageBytes;
    const std::size_t count = std::min(bytes - done, static_cast<std::size_t>(kPageBytes - first));
    visit(at / kPageBytes, static_cast<std::size_t>(first), count, done);
    done += count;
  }
}

void SparseImage::write(std::int64_t offset, const void* data, std::size_t bytes) {
  for_each_page(offset, bytes,
                [&](std::int64_t number, std::size_t first, std::size_t count, std::size_t done) {
                  auto& page = pages_[number];
                  if (!page) page = std::make_unique<Page>();
                  std::memcpy(page->data() + first, static_cast<const std::byte*>(data) + done,
                              count);
                });
}

void SparseImage::read(std::int64_t offset, void* data, std::size_t bytes) const {
  for_each_page(offset, bytes,
                [&](std::int64_t number, std::size_t first, std::size_t count, std::size_t done) {
                  std::byte* to = static_cast<std::byte*>(data) + done;
                  if (const auto at = pages_.find(number); at != pages_.end())
                    std::memcpy(to, at->second->data() + first, count);
                  else
                    std::memset(to, 0, count);
                });
}

void SparseImage::store(const File& file, std::span<const Range> except) const {
  CombinedWrites writes(file);
  auto next = except.begin();
  for (const auto& [number, page] : pages_) {
    const std::int64_t begin = number * kPageBytes, end = std::min(begin + kPageBytes, bytes_);
    for (std::int64_t at = begin; at < end;) {
      while (next != except.end() && next->end() <= at) ++next;
      const std::int64_t stop = next == except.end() ? end : std::clamp(next->begin, at, end);
      if (stop > at)
        writes.write(page->data() + (at - begin), static_cast<std::size_t>(stop - at), at);
      at = stop == end ? end : std::min(end, next->end());
    }
  }
  writes.flush();
  file.resize(bytes_);
}

}  // namespace tessera::checkpoint
