// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_memory.hpp"

#include <algorithm>
#include <new>

#if H5_VERSION_GE(1, 13, 2)
#include <H5FDdevelop.h>
#endif

namespace tessera::checkpoint {
namespace {

struct MemoryFile : H5FD_t {
  SparseImage* image = nullptr;
  haddr_t allocated = 0;
};

struct DriverInfo {
  SparseImage* image;
};

MemoryFile& file_of(H5FD_t* file) { return *static_cast<MemoryFile*>(file); }

H5FD_t* open_file(const char*, unsigned, hid_t access, haddr_t) {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access));
  auto* file = info == nullptr ? nullptr : new (std::nothrow) MemoryFile{};
  if (file != nullptr) file->image = info->image;
  return file;
}

herr_t close_file(H5FD_t* file) {
  delete &file_of(file);
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t allocated(const H5FD_t* file, H5FD_mem_t) {
  return static_cast<const MemoryFile*>(file)->allocated;
}

herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t bytes) {
  file_of(file).allocated = bytes;
  return 0;
}

haddr_t end_of_file(const H5FD_t* file, H5FD_mem_t) {
  return static_cast<haddr_t>(static_cast<const MemoryFile*>(file)->image->size());
}

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, std::size_t bytes, void* data) {
  file_of(file).image->read(static_cast<std::int64_t>(offset), data, bytes);
  return 0;
}

herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, std::size_t bytes, const void* data) {
  try {
    file_of(file).image->write(static_cast<std::int64_t>(offset), data, bytes);
    return 0;
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
  file_of(file).image->resize(static_cast<std::int64_t>(file_of(file).allocated));
  return 0;
}

H5FD_class_t make_class() {
  H5FD_class_t driver{};
#if H5_VERSION_GE(1, 13, 2)
  driver.version = H5FD_CLASS_VERSION;
  // any number above 511 that is not registered elsewhere
  driver.value = static_cast<H5FD_class_value_t>(1027);
#endif
  driver.name = "tessera memory";
  driver.maxaddr = HADDR_MAX / 2;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(DriverInfo);
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.get_eoa = allocated;
  driver.set_eoa = set_allocated;
  driver.get_eof = end_of_file;
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  const H5FD_mem_t map[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(map), std::end(map), driver.fl_map);
  return driver;
}

}  // namespace

herr_t use_memory_driver(hid_t access, SparseImage& image) {
  static const H5FD_class_t driver = make_class();
  static const hid_t id = H5FDregister(&driver);
  const DriverInfo info{&image};
  return H5Pset_driver(access, id, &info);
}

}  // namespace tessera::checkpoint
