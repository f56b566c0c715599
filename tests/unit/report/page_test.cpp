// SPDX-License-Identifier: Apache-2.0
#include "tessera/report/page.hpp"

#include <gtest/gtest.h>

#include "well_formed.hpp"

namespace tessera::report {
namespace {

TEST(WellFormed, SeesMistakes) {
  EXPECT_TRUE(well_formed("<a><b x=\"1\"/><c>t</c></a>"));
  EXPECT_FALSE(well_formed("<a><b></a>"));
  EXPECT_FALSE(well_formed("<a x=\"<\"/>"));
}

TEST(Page, IsOneFileThatLoadsNothing) {
  Page page("a <run>", "8 ranks & more");
  page.section("Loss and rate", paragraph("x < y"));
  const std::string html = page.html();
  EXPECT_TRUE(well_formed(html));
  EXPECT_TRUE(has(html, "<h1>a &lt;run&gt;</h1>"));
  EXPECT_TRUE(has(html, "8 ranks &amp; more"));
  EXPECT_TRUE(has(html, "<section id=\"loss-and-rate\">"));
  EXPECT_TRUE(has(html, "<p>x &lt; y</p>"));
  EXPECT_TRUE(has(html, "prefers-color-scheme:dark"));
  for (const char* outside : {"http:", "https:", "<script", "@import", "url(", "src=\"/"})
    EXPECT_FALSE(has(html, outside));
}

TEST(Page, TablesAlignNumbersAndEscapeTexts) {
  const Html html =
      table({{{"run"}, {"loss", true}},
             {{{{"a<b", "point 1/index.html"}, "4.31"}, true}, {{"c", "-"}, false, true}}});
  EXPECT_TRUE(well_formed(html.text));
  EXPECT_TRUE(has(html.text,
                  "<tr class=\"strong\"><td><a href=\"./point%201/index.html\">a&lt;b</a></td><td "
                  "class=\"n\">4.31</td>"));
  EXPECT_TRUE(has(html.text, "<tr class=\"faint\">"));
}

TEST(Page, ALinkIsAPathWhateverItHolds) {
  const auto link = [](const char* path) { return table({{{"x"}}, {{{{"x", path}}}}}).text; };
  EXPECT_TRUE(has(link("javascript:alert(1)"), "href=\"./javascript%3Aalert%281%29\""));
  EXPECT_TRUE(has(link("a\"b#c?d"), "href=\"./a%22b%23c%3Fd\""));
  EXPECT_TRUE(has(link("../x"), "href=\"../x\""));
}

TEST(Page, PicturesStandAloneInBase64) {
  EXPECT_TRUE(has(picture("abc", "a \"b\"").text,
                  "data:image/svg+xml;base64,YWJj\" alt=\"a &quot;b&quot;\""));
  EXPECT_TRUE(has(picture("abcd", "").text, "YWJjZA==\""));
  EXPECT_TRUE(has(picture("abcde", "").text, "YWJjZGU=\""));
}

TEST(Page, OtherPiecesAreWellFormed) {
  const Html all = grid(
      {figures({{"final loss", "4.31"}}), preformatted("a\n <b>"), folded("more", paragraph("x"))});
  EXPECT_TRUE(well_formed(all.text));
  EXPECT_TRUE(has(all.text, "a\n &lt;b&gt;"));
  EXPECT_TRUE(has(all.text, "<summary>more</summary>"));
}

TEST(Escape, LeavesOnlyWhatXmlMayHold) {
  EXPECT_EQ(escape("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
  EXPECT_EQ(escape("2 × 2 × 2"), "2 × 2 × 2");
  const std::string replacement = "\xef\xbf\xbd";
  using namespace std::string_literals;
  EXPECT_EQ(escape("\0\x1b"s), replacement + replacement);
  EXPECT_EQ(escape("\xff"
                   "a\xc3"),
            replacement + "a" + replacement);
  EXPECT_EQ(escape("\xed\xa0\x80").substr(0, 3), replacement) << "a surrogate";
}

}  // namespace
}  // namespace tessera::report
