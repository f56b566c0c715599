// SPDX-License-Identifier: Apache-2.0
#include "format/hdf5_file.hpp"

#include <cmath>
#include <limits>

#include "tessera/base/error.hpp"

namespace tessera::checkpoint {
namespace {

/// The innermost reason on libhdf5's error stack.
std::string last_reason() {
  std::string reason = "no reason given";
  const H5E_walk2_t take_first = [](unsigned depth, const H5E_error2_t* error,
                                    void* out) -> herr_t {
    if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &reason);
  return reason;
}

std::vector<hsize_t> dims_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// A floating type of its own: `exponent` bits above `mantissa` bits, IEEE rules.
hid_t small_float(std::size_t bytes, std::size_t exponent, std::size_t mantissa) {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 8 * bytes - 1, mantissa, exponent, 0, mantissa);
  H5Tset_size(type, bytes);
  H5Tset_ebias(type, (std::size_t{1} << (exponent - 1)) - 1);
  return type;
}

hid_t make_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return H5Tcopy(H5T_IEEE_F64LE);
    case DType::f32:
      return H5Tcopy(H5T_IEEE_F32LE);
    case DType::f16:
      return small_float(2, 5, 10);
    case DType::bf16:
      return small_float(2, 8, 7);
    case DType::i64:
      return H5Tcopy(H5T_STD_I64LE);
    case DType::i32:
      return H5Tcopy(H5T_STD_I32LE);
    case DType::i16:
      return H5Tcopy(H5T_STD_I16LE);
    case DType::i8:
      return H5Tcopy(H5T_STD_I8LE);
    case DType::u8:
      return H5Tcopy(H5T_STD_U8LE);
    case DType::f8e4m3:
      return small_float(1, 4, 3);
    case DType::f8e5m2:
      return small_float(1, 5, 2);
  }
  return H5I_INVALID_HID;
}

bool is_floating(hid_t type) { return H5Tget_class(type) == H5T_FLOAT; }

}  // namespace

template <class Id>
Id Hdf5File::checked(Id result, const char* call) const {
  require(result >= 0, ExitCode::checkpoint, "cannot write {} ({}: {})", path_.string(), call,
          last_reason());
  return result;
}

namespace {

/// Properties of objects that do not note when they were made: the same state gives the same bytes.
hid_t untimed(hid_t kind) {
  const hid_t list = H5Pcreate(kind);
  H5Pset_obj_track_times(list, false);
  return list;
}

hid_t create(const std::filesystem::path& path, std::int64_t metadata_bytes, SparseImage& image) {
  H5Eset_auto2(H5E_DEFAULT, nullptr,
               nullptr);  // reasons go into our message, not to standard error
  const Hid access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_alignment(access, 4096, 4096);
  H5Pset_meta_block_size(access, static_cast<hsize_t>(metadata_bytes));
  use_memory_driver(access, image);
  const Hid creation(untimed(H5P_FILE_CREATE), H5Pclose);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access);
  require(file >= 0, ExitCode::checkpoint, "cannot create {} (H5Fcreate: {})", path.string(),
          last_reason());
  return file;
}

/// The right to call libhdf5. Its clean-up at exit() is omitted: it would not wait for a thread
/// that is in it, and there is nothing to flush.
std::unique_lock<std::mutex> take_library() {
  static std::mutex mutex;
  std::unique_lock lock(mutex);
  static const herr_t before_its_first_call = H5dont_atexit();
  static_cast<void>(before_its_first_call);
  return lock;
}

hid_t contiguous_layout() {
  const hid_t list = untimed(H5P_DATASET_CREATE);
  H5Pset_layout(list, H5D_CONTIGUOUS);
  H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(list, H5D_FILL_TIME_NEVER);
  return list;
}

/// h5py gives str for these, bytes for strings of fixed length.
hid_t variable_text() {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

}  // namespace

Hdf5File::Hdf5File(const std::filesystem::path& path, std::int64_t metadata_bytes)
    : library_(take_library()),
      path_(path),
      file_(create(path, metadata_bytes, image_), H5Fclose),
      group_(untimed(H5P_GROUP_CREATE), H5Pclose),
      contiguous_(contiguous_layout(), H5Pclose),
      text_(variable_text(), H5Tclose),
      scalar_(H5Screate(H5S_SCALAR), H5Sclose) {}

void Hdf5File::make_groups_of(const std::string& name) {
  for (std::size_t end = name.find('/'); end != name.npos; end = name.find('/', end + 1)) {
    const auto [group, is_new] = groups_.insert(name.substr(0, end));
    if (is_new)
      Hid(checked(H5Gcreate2(file_, group->c_str(), H5P_DEFAULT, group_, H5P_DEFAULT),
                  "H5Gcreate2"),
          H5Gclose);
  }
}

std::int64_t Hdf5File::add_with_type(const std::string& name, hid_t type, const Shape& shape,
                                     const Origin* origin) {
  make_groups_of(name);
  const auto dims = dims_of(shape);
  const Hid space(
      checked(shape.empty() ? H5Screate(H5S_SCALAR)
                            : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
              "H5Screate"),
      H5Sclose);
  const Hid dataset(
      checked(H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT, contiguous_, H5P_DEFAULT),
              "H5Dcreate2"),
      H5Dclose);
  if (origin != nullptr) {
    attach(dataset, "global_shape", origin->global_shape);
    attach(dataset, "offset", origin->offset);
    attach(dataset, "coordinate", origin->coordinate);
  }
  if (element_count(shape) == 0) return 0;
  const haddr_t offset = H5Dget_offset(dataset);
  require(offset != HADDR_UNDEF, ExitCode::checkpoint,
          "cannot write {} (H5Dget_offset: no place for {})", path_.string(), name);
  return static_cast<std::int64_t>(offset);
}

std::int64_t Hdf5File::add_contiguous(const std::string& name, DType dtype, const Shape& shape,
                                      const Origin* origin) {
  const Hid type(checked(make_type(dtype), "H5Tcopy"), H5Tclose);
  return add_with_type(name, type, shape, origin);
}

std::int64_t Hdf5File::add_checksums(const std::string& name, std::int64_t count) {
  return add_with_type(name, H5T_STD_U32LE, {count}, nullptr);
}

void Hdf5File::add_virtual(const std::string& name, DType dtype, const Shape& shape,
                           const std::vector<VirtualPart>& parts) {
  make_groups_of(name);
  const Hid type(checked(make_type(dtype), "H5Tcopy"), H5Tclose);
  const auto dims = dims_of(shape);
  const Hid space(checked(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                          "H5Screate_simple"),
                  H5Sclose);
  const Hid creation(untimed(H5P_DATASET_CREATE), H5Pclose);
  for (const VirtualPart& part : parts) {
    const auto start = dims_of(part.box.offset), count = dims_of(part.box.extent);
    checked(
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
        "H5Sselect_hyperslab");
    const Hid source(
        checked(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                "H5Screate_simple"),
        H5Sclose);
    checked(H5Pset_virtual(creation, space, part.file.c_str(), part.dataset.c_str(), source),
            "H5Pset_virtual");
  }
  if (is_floating(type)) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    checked(H5Pset_fill_value(creation, H5T_NATIVE_FLOAT, &nan), "H5Pset_fill_value");
  }
  H5Sselect_all(space);
  const Hid dataset(
      checked(H5Dcreate2(file_, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
              "H5Dcreate2"),
      H5Dclose);
}

void Hdf5File::add_link(const std::string& name, const std::string& file,
                        const std::string& dataset) {
  make_groups_of(name);
  checked(H5Lcreate_external(file.c_str(), dataset.c_str(), file_, name.c_str(), H5P_DEFAULT,
                             H5P_DEFAULT),
          "H5Lcreate_external");
}

void Hdf5File::attach(hid_t object, const char* name, const std::string& text) {
  const Hid made(
      checked(H5Acreate2(object, name, text_, scalar_, H5P_DEFAULT, H5P_DEFAULT), "H5Acreate2"),
      H5Aclose);
  const char* const pointer = text.c_str();
  checked(H5Awrite(made, text_, &pointer), "H5Awrite");
}

void Hdf5File::attach(hid_t object, const char* name, const std::vector<std::int64_t>& numbers) {
  const hsize_t count = numbers.size();
  const Hid space(checked(H5Screate_simple(1, &count, nullptr), "H5Screate_simple"), H5Sclose);
  const Hid made(checked(H5Acreate2(object, name, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT),
                         "H5Acreate2"),
                 H5Aclose);
  if (count != 0) checked(H5Awrite(made, H5T_NATIVE_INT64, numbers.data()), "H5Awrite");
}

void Hdf5File::close() { checked(H5Fclose(file_.release()), "H5Fclose"); }

std::string Hdf5File::version() {
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  return fmt::format("HDF5 {}.{}.{}", major, minor, release);
}

}  // namespace tessera::checkpoint
