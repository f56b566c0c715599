// SPDX-License-Identifier: Apache-2.0
#include "tessera/base/json_reader.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/error_of.hpp"

namespace tessera {
namespace {

using tessera::test::error_of;
using testing::HasSubstr;

const TextSource kSource{"m", ExitCode::data};

TEST(JsonReader, RepeatedKeysAreRefused) {
  EXPECT_THAT(
      error_of(ExitCode::data, [&] { parse_json(R"({"a": {"b": 1, "c": 2, "b": 3}})", kSource); }),
      HasSubstr("\"b\" occurs twice"));
}

TEST(JsonReader, ValuesOfEveryKindArriveAsTheyStandThere) {
  const std::string text =
      R"({"a":[null,true,false,-3,18446744073709551615,0.5,"x\u00e9",[],{}],"b":{"c":[[1],{"d":2}]}})";
  EXPECT_EQ(parse_json(text, kSource), nlohmann::json::parse(text));
  for (const char* scalar : {"7", "\"x\"", "null", "[]"})
    EXPECT_EQ(parse_json(scalar, kSource), nlohmann::json::parse(scalar));
  for (const char* bad : {"", "{", "[1,]", "{\"a\":1,}", "[1] 2", "{\"a\" 1}", "1e999", "nul"})
    EXPECT_THAT(error_of(ExitCode::data, [&] { parse_json(bad, kSource); }),
                HasSubstr("not valid JSON"));
}

/// As many tensors as large mixtures have: minutes where each costs as much as those before it.
TEST(JsonReader, TimeGrowsWithTheTextAndNotWithItsSquare) {
  std::string text = "{";
  for (int i = 0; i < 200'000; ++i)
    text += fmt::format(R"({}"t{}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                        i == 0 ? "" : ",", i);
  EXPECT_EQ(parse_json(text + "}", kSource).size(), 200'000u);
}

TEST(JsonReader, MessagesQuoteAFewWordsOnly) {
  const std::string word(1 << 20, 'x');
  EXPECT_LT(error_of(ExitCode::data, [&] { parse_json("[\"" + word, kSource); }).size(), 1000u);
  EXPECT_LT(error_of(ExitCode::data,
                     [&] { parse_json("{\"" + word + "\": 1, \"" + word + "\": 1}", kSource); })
                .size(),
            1000u);
}

TEST(JsonReader, NodesSayWhatTheyAreAndWhere) {
  const nlohmann::json json = parse_json(
      R"({"name": "x", "list": [1, {"deep": -1}], "half": 0.5, "on": true, "shape": [2, 3]})",
      kSource);
  const JsonNode root(json, kSource);
  EXPECT_EQ(root["name"].string(), "x");
  EXPECT_EQ(root["none"].string_or("absent"), "absent");
  EXPECT_EQ(root["list"][0].integer(1, 1), 1);
  EXPECT_EQ(root["half"].number(0), 0.5);
  EXPECT_EQ(root["none"].number(2), 2);
  EXPECT_TRUE(root["on"].boolean(false));
  EXPECT_EQ(shape_in(root["shape"]), (Shape{2, 3}));
  EXPECT_EQ(error_of(ExitCode::data, [&] { root["list"][1]["deep"].count(); }),
            "m, list[1].deep: a whole number from 0 to 4611686018427387904 is needed here, not -1");
  EXPECT_EQ(error_of(ExitCode::data, [&] { root["half"].integer(0, 1); }),
            "m, half: a whole number from 0 to 1 is needed here, not 0.5");
  EXPECT_EQ(error_of(ExitCode::data, [&] { root["name"]["x"].string(); }),
            "m, name: an object is needed here, not \"x\"");
  EXPECT_EQ(error_of(ExitCode::data, [&] { root["none"].string(); }),
            "m, none: a string is needed here, not null");
  EXPECT_EQ(error_of(ExitCode::data, [&] { root["list"].boolean(false); }),
            "m, list: true or false is needed here, not array");
}

}  // namespace
}  // namespace tessera
