// SPDX-License-Identifier: Apache-2.0
#include "tessera/hf/safetensors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"
#include "tessera/base/error.hpp"

namespace tessera::hf {
namespace {

using tessera::test::error_if_any;
using tessera::test::put;
using tessera::test::TemporaryFolder;
using testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  const std::uint64_t bytes = header.size();
  std::memcpy(length.data(), &bytes, 8);
  return length + header + data;
}

/// "a": f32 [2, 3] = 0..5 and "b": bf16 [2] = 1, -2.
std::string small_file() {
  std::string data(28, '\0');
  for (int i = 0; i < 6; ++i) {
    const float value = static_cast<float>(i);
    std::memcpy(data.data() + 4 * i, &value, 4);
  }
  const std::uint16_t bf16[]{0x3f80, 0xc000};
  std::memcpy(data.data() + 24, bf16, 4);
  return file_of(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[24,28]}})",
      data);
}

class Safetensors : public testing::Test {
 protected:
  std::filesystem::path put_file(const std::string& contents) {
    put(folder_ / "x.safetensors", contents);
    return folder_ / "x.safetensors";
  }
  std::string refusal(const std::string& contents) {
    const auto path = put_file(contents);
    const std::string error =
        error_if_any(ExitCode::data, [&] { const SafetensorsReader reader(path); });
    if (!error.empty()) {
      EXPECT_THAT(error, HasSubstr(path.string()));
    }
    return error;
  }
  std::string refused_header(const std::string& header, std::size_t data_bytes) {
    return refusal(file_of(header, std::string(data_bytes, 'x')));
  }
  TemporaryFolder folder_;
};

TEST_F(Safetensors, ReadsWholesBoxesAndOtherTypes) {
  const SafetensorsReader reader(put_file(small_file()));
  ASSERT_EQ(reader.tensors().size(), 2u);
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  ASSERT_NE(reader.find("b"), nullptr);
  EXPECT_EQ(reader.find("b")->dtype, DType::bf16);
  EXPECT_EQ(reader.find("c"), nullptr);

  std::vector<double> whole(6);
  reader.read_whole("a", DType::f64, whole.data());
  EXPECT_EQ(whole, (std::vector<double>{0, 1, 2, 3, 4, 5}));
  std::vector<float> columns(4), b(2);
  reader.read({"a", DType::f32, {2, 3}, {{0, 1}, {2, 2}}}, columns.data());
  EXPECT_EQ(columns, (std::vector<float>{1, 2, 4, 5}));
  reader.read_whole("b", DType::f32, b.data());
  EXPECT_EQ(b, (std::vector<float>{1, -2}));
  reader.read({"a", DType::f32, {2, 3}, {{2, 0}, {0, 3}}},
              nullptr);  // an empty box touches nothing
}

TEST_F(Safetensors, RefusesWhatTheFileDoesNotHold) {
  const SafetensorsReader reader(put_file(small_file()));
  std::vector<float> out(6);
  EXPECT_THROW(reader.read_whole("c", DType::f32, out.data()), Error);
  EXPECT_THROW(reader.read_whole("a", DType::i32, out.data()), Error);
  EXPECT_THROW(reader.read({"a", DType::f32, {3, 2}, {{0, 0}, {3, 2}}}, out.data()), Error);
}

TEST_F(Safetensors, RefusesDamagedHeaders) {
  const std::string a = R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_EQ(refused_header("{" + a + "}", 4), "");
  EXPECT_EQ(refused_header("{}", 0), "");
  EXPECT_THAT(refused_header("{" + a, 4), HasSubstr("not valid JSON"));
  EXPECT_THAT(refused_header("[]", 0), HasSubstr("an object is needed here"));
  EXPECT_THAT(refused_header("{" + a + "," + a + "}", 4), HasSubstr("twice"));
  EXPECT_THAT(refused_header("{" + a + "}", 3), HasSubstr("truncated"));
  EXPECT_THAT(refused_header("{" + a + "}", 5), HasSubstr("follow the last tensor"));
  EXPECT_THAT(
      refused_header("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})", 6),
      HasSubstr("overlap"));
  EXPECT_THAT(
      refused_header("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[6,10]}})", 10),
      HasSubstr("gap"));
  EXPECT_THAT(refused_header(R"({"a":{"dtype":"Q7","shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("unknown type"));
  EXPECT_THAT(refused_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              HasSubstr("do not agree"));
  EXPECT_THAT(refused_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4),
              HasSubstr("do not agree"));
  EXPECT_THAT(
      refused_header(
          R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", 4),
      HasSubstr("do not agree"));
  EXPECT_THAT(refused_header(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
              HasSubstr("whole number"));
  EXPECT_THAT(refused_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,1e99]}})", 4),
              HasSubstr("whole number"));
  EXPECT_THAT(refused_header(R"({"a":{"dtype":"F32","shape":"no","data_offsets":[0,4]}})", 4),
              HasSubstr("shape"));
  EXPECT_THAT(refused_header(R"({"a":7})", 4), HasSubstr("a: an object is needed"));
  EXPECT_THAT(refused_header(R"({"__metadata__":{"x":1}})", 0), HasSubstr("metadata"));
  EXPECT_THAT(refused_header(std::string(200'000, '['), 0), HasSubstr("too deeply"));
  EXPECT_THAT(refusal(std::string(8, '\xff') + "{}"), HasSubstr("safetensors"));
  EXPECT_THAT(refusal("abc"), HasSubstr("too few"));
  EXPECT_THAT(refusal(""), HasSubstr("too few"));
}

TEST_F(Safetensors, EveryCutShortFileIsRefused) {
  const std::string good = small_file();
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_NE(refusal(good.substr(0, bytes)), "") << bytes;
}

TEST_F(Safetensors, AnyFlippedHeaderByteIsRefusedOrHarmless) {
  const std::string good = small_file();
  std::vector<double> out(64);
  for (std::size_t at = 0; at + 28 < good.size(); ++at)
    for (const unsigned char flip : {0x01, 0x10, 0x80, 0xff}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      const auto path = put_file(bad);
      try {
        const SafetensorsReader reader(path);
        for (const auto& tensor : reader.tensors())
          reader.read_whole(tensor.name, tensor.dtype, out.data());
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
      }
    }
}

TEST_F(Safetensors, ReadsAFolderOfShards) {
  const auto one = [](const char* name, float value) {
    std::string data(4, '\0');
    std::memcpy(data.data(), &value, 4);
    return file_of(
        std::string(R"({")") + name + R"(":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
        data);
  };
  put(folder_ / "m-1.safetensors", one("x", 1.5f));
  put(folder_ / "m-2.safetensors", one("y", 2.5f));
  const auto index = [&](const std::string& map) {
    put(folder_ / "model.safetensors.index.json", R"({"metadata":{},"weight_map":)" + map + "}");
    return SafetensorsReader(folder_.path());
  };
  const auto reader = index(R"({"y":"m-2.safetensors","x":"m-1.safetensors"})");
  float x = 0, y = 0;
  reader.read_whole("x", DType::f32, &x);
  reader.read_whole("y", DType::f32, &y);
  EXPECT_EQ(x, 1.5f);
  EXPECT_EQ(y, 2.5f);
  EXPECT_THROW(index(R"({"x":"m-2.safetensors"})"), Error);
  EXPECT_THROW(index(R"({"x":"m-3.safetensors"})"), Error);
  EXPECT_THROW(index(R"({"x":"../m-1.safetensors"})"), Error);
  EXPECT_THROW(index("[]"), Error);
  TemporaryFolder empty;
  EXPECT_THROW(SafetensorsReader{empty.path()}, Error);
  EXPECT_THROW(SafetensorsReader{empty / "none.safetensors"}, Error);
}

TEST_F(Safetensors, WriterTakesPiecesInAnyOrderAndReaderReadsThem) {
  const auto path = folder_ / "out.safetensors";
  std::vector<float> values(600);
  std::iota(values.begin(), values.end(), 0.0f);
  const std::int64_t scalar = -3;
  {
    SafetensorsWriter writer(
        path, {{"s", DType::i64, {}}, {"w", DType::f32, {20, 30}}, {"e", DType::bf16, {0, 4}}});
    writer.write("w", 300, 300, values.data() + 300);
    writer.write("s", 0, 1, &scalar);
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.write("w", 0, 300, values.data());
    writer.finish();
  }
  const SafetensorsReader reader(path);
  std::vector<float> back(600);
  reader.read_whole("w", DType::f32, back.data());
  EXPECT_EQ(back, values);
  std::int32_t s = 0;
  reader.read_whole("s", DType::i32, &s);
  EXPECT_EQ(s, -3);
  EXPECT_EQ(reader.find("e")->shape, (Shape{0, 4}));
}

TEST_F(Safetensors, AnUnfinishedFileLeavesNothingBehind) {
  const auto path = folder_ / "out.safetensors";
  {
    SafetensorsWriter writer(path, {{"w", DType::f32, {2}}});
    const float one = 1;
    writer.write("w", 0, 1, &one);
    EXPECT_THROW(writer.finish(), Error);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  EXPECT_THROW(SafetensorsWriter(folder_ / "no/such/out.safetensors", {}), Error);
}

TEST_F(Safetensors, ColumnsOfAWideTensorNeedNoWholeRead) {
  const auto path = folder_ / "wide.safetensors";
  const std::int64_t rows = 8, columns = 300'000;  // a column slice jumps over more than the window
  std::vector<std::int32_t> values(static_cast<std::size_t>(rows * columns));
  std::iota(values.begin(), values.end(), 0);
  SafetensorsWriter writer(path, {{"w", DType::i32, {rows, columns}}});
  writer.write("w", 0, rows * columns, values.data());
  writer.finish();
  const SafetensorsReader reader(path);
  std::vector<std::int64_t> slice(static_cast<std::size_t>(rows * 5));
  reader.read({"w", DType::i64, {rows, columns}, {{0, 1234}, {rows, 5}}}, slice.data());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < 5; ++c)
      ASSERT_EQ(slice[static_cast<std::size_t>(r * 5 + c)], r * columns + 1234 + c);
  std::vector<std::int32_t> whole(values.size());
  reader.read_whole("w", DType::i32, whole.data());
  EXPECT_EQ(whole, values);
}

}  // namespace
}  // namespace tessera::hf
