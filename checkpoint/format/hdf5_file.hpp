// SPDX-License-Identifier: Apache-2.0
// The one wrapper of libhdf5: just what writing shards and the index needs. Nothing here reads a
// file's contents. libhdf5 is not thread-safe: an Hdf5File keeps it to itself for as long as it
// lives, so another one waits; on the same thread, forever.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "format/hdf5_memory.hpp"
#include "tessera/base/box.hpp"
#include "tessera/base/tensor_slice.hpp"

namespace tessera::checkpoint {

/// An identifier that closes itself.
class Hid {
 public:
  using Closer = herr_t (*)(hid_t);
  Hid(hid_t id, Closer close) : id_(id), close_(close) {}
  Hid(Hid&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hid& operator=(Hid&&) = delete;
  ~Hid() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }
  hid_t release() { return std::exchange(id_, H5I_INVALID_HID); }

 private:
  hid_t id_;
  Closer close_;
};

/// Where a dataset's values belong; stored in its attributes.
struct Origin {
  const Shape& global_shape;
  const Shape& offset;
  const std::string& coordinate;
};

/// A box of a dataset in another file.
struct VirtualPart {
  std::string file;  ///< relative to the folder of the file that refers to it
  std::string dataset;
  Box box;
};

/// The structure of an HDF5 file, made in memory, in the 1.10 format (older ones open after a crash
/// and are silently incomplete).
class Hdf5File {
 public:
  /// `path` is for messages. `metadata_bytes` is an estimate: that much is kept together at the
  /// front of the file.
  Hdf5File(const std::filesystem::path& path, std::int64_t metadata_bytes);
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  /// A contiguous dataset whose bytes the caller writes into the stored file; gives their offset in
  /// the file. Intermediate groups are made. Datasets of a page or more begin at a multiple of
  /// 4096.
  std::int64_t add_contiguous(const std::string& name, DType dtype, const Shape& shape,
                              const Origin* origin = nullptr);
  std::int64_t add_checksums(const std::string& name, std::int64_t count);  ///< uint32
  /// A dataset composed of parts of others; where a part's file is missing a reader sees NaN.
  void add_virtual(const std::string& name, DType dtype, const Shape& shape,
                   const std::vector<VirtualPart>& parts);
  /// A link to a dataset in another file (virtual datasets cannot be scalars).
  void add_link(const std::string& name, const std::string& file, const std::string& dataset);
  /// Attributes of the file.
  void attribute(const char* name, const std::string& text) { attach(file_, name, text); }
  void attribute(const char* name, const std::vector<std::int64_t>& numbers) {
    attach(file_, name, numbers);
  }
  /// "HDF5 1.10.8".
  static std::string version();
  /// Ends the structure; afterwards image() holds it, zero where datasets are.
  void close();
  const SparseImage& image() const { return image_; }
  SparseImage take_image() { return std::move(image_); }

 private:
  void make_groups_of(const std::string& name);
  std::int64_t add_with_type(const std::string& name, hid_t type, const Shape& shape,
                             const Origin* origin);
  void attach(hid_t object, const char* name, const std::string& text);
  void attach(hid_t object, const char* name, const std::vector<std::int64_t>& numbers);
  template <class Id>
  Id checked(Id result, const char* call) const;
  std::unique_lock<std::mutex> library_;
  std::filesystem::path path_;
  SparseImage image_;
  Hid file_;
  std::set<std::string> groups_;
  // Made once: each costs as much as a dataset.
  Hid group_;
  Hid contiguous_;
  Hid text_;
  Hid scalar_;
};

}  // namespace tessera::checkpoint
