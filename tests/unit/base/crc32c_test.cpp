// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/crc32c.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace tessera {
namespace {

std::uint32_t bit_by_bit(const std::string& text) {
  std::uint32_t crc = ~0u;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
  }
  return ~crc;
}

TEST(Crc32c, PublishedValues) {  // RFC 3720, appendix B.4
  const std::vector<unsigned char> zeros(32, 0), ones(32, 0xff);
  EXPECT_EQ(crc32c(0, zeros.data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(0, ones.data(), 32), 0x62a8ab43u);
  EXPECT_EQ(crc32c(0, "123456789", 9), 0xe3069283u);
  EXPECT_EQ(bit_by_bit("123456789"), 0xe3069283u);
}

TEST(Crc32c, AllPathsAgreeAtEveryLengthAndAlignment) {
  std::mt19937 random(1);
  std::string text(70'000, '\0');
  for (char& c : text) c = static_cast<char>(random());
  for (std::size_t bytes :
       {0, 1, 7, 8, 9, 255, 256, 767, 768, 769, 1600, 24575, 24576, 24577, 60'000})
    for (std::size_t shift : {0, 1, 5}) {
      const std::uint32_t slow = bit_by_bit(text.substr(shift, bytes));
      EXPECT_EQ(crc32c(0, text.data() + shift, bytes), slow) << bytes;
      EXPECT_EQ(crc32c_portable(0, text.data() + shift, bytes), slow) << bytes;
      const std::uint32_t first = crc32c(0, text.data() + shift, bytes / 3);
      EXPECT_EQ(crc32c(first, text.data() + shift + bytes / 3, bytes - bytes / 3), slow) << bytes;
    }
}

}  // namespace
}  // namespace tessera
