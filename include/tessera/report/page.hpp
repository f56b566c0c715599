// SPDX-License-Identifier: Apache-2.0
// A page for people: one HTML file that needs nothing else. It has no script and loads nothing, is
// readable on light and on dark screens, and can be sent to somebody as it is.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::report {

/// A piece of HTML whose texts are escaped: what the functions below return, and charts.
struct Html {
  std::string text;
  Html& operator+=(const Html& other) { return text += other.text, *this; }
};
inline Html operator+(Html left, const Html& right) { return left += right; }

/// Text for an element or a quoted attribute, of HTML and of XML; characters that XML 1.0 forbids
/// become U+FFFD.
std::string escape(std::string_view text);

class Page {
 public:
  /// `subtitle`: one line under the title; empty: none.
  explicit Page(std::string title, std::string subtitle = "");

  /// Adds a section at the end; it can be linked to as "#" + the heading in small letters with '-'
  /// for blanks.
  void section(const std::string& heading, const Html& content);
  /// The whole file.
  std::string html() const;

 private:
  std::string title_;
  std::string subtitle_;
  Html body_;
};

/// A text of one paragraph.
Html paragraph(std::string_view text);
/// Text as it is, with its line ends: a log, a sample, a script. Long lines wrap.
Html preformatted(std::string_view text);
/// `content`, folded below a line that opens it.
Html folded(std::string_view summary, const Html& content);
/// Contents side by side where the screen is wide enough for two.
Html grid(const std::vector<Html>& contents);
/// Figures to see first: {"final loss", "4.31"}, large, in a row.
Html figures(const std::vector<std::pair<std::string, std::string>>& figures);
/// An SVG file inside of the page. Its styles and scripts do not reach the page. `description`: for
/// who cannot see it.
Html picture(std::string_view svg, std::string_view description);

struct Cell {
  Cell(std::string text_, std::string link_ = "")
      : text(std::move(text_)), link(std::move(link_)) {}
  Cell(const char* text_) : text(text_) {}
  std::string text;
  std::string link;  ///< path of a file, from the page's folder; empty: none
};

struct Row {
  std::vector<Cell> cells;  ///< one for each column
  bool strong = false;      ///< the one to see, e.g. the best
  bool faint = false;       ///< e.g. one that failed
};

struct Column {
  std::string name;
  bool numeric = false;  ///< aligned at the digits
};

struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// A wide table scrolls within itself, not the page.
Html table(const Table& table);

}  // namespace tessera::report
