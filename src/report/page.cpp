// SPDX-License-Identifier: Apache-2.0
#include "tessera/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "page_style.hpp"

namespace tessera::report {
namespace {

/// Of a heading: "Loss and rate" -> "loss-and-rate".
std::string anchor(std::string heading) {
  std::ranges::transform(heading, heading.begin(),
                         [](unsigned char c) { return std::isalnum(c) ? std::tolower(c) : '-'; });
  return heading;
}

/// A path as a relative link: no character of it is taken for a scheme, a query or a fragment.
std::string link_to(std::string_view path) {
  constexpr std::string_view kPlain = "-._~/";
  std::string link = path.starts_with('/') || path.starts_with('.') ? "" : "./";
  for (const unsigned char c : path)
    if (std::isalnum(c) || kPlain.find(static_cast<char>(c)) != kPlain.npos)
      link += static_cast<char>(c);
    else
      link += fmt::format("%{:02X}", c);
  return link;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](std::size_t i) {
      return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U;
    };
    const unsigned bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t i = 0; i < 4; ++i)
      text += at + i <= bytes.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

std::string cell_text(const Cell& cell) {
  if (cell.link.empty()) return escape(cell.text);
  return fmt::format("<a href=\"{}\">{}</a>", link_to(cell.link), escape(cell.text));
}

std::string table_line(const Table& table, const Row& row) {
  std::string line = row.strong  ? "<tr class=\"strong\">"
                     : row.faint ? "<tr class=\"faint\">"
                                 : "<tr>";
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const bool numeric = i < table.columns.size() && table.columns[i].numeric;
    line += fmt::format("<td{}>{}</td>", numeric ? " class=\"n\"" : "", cell_text(row.cells[i]));
  }
  return line + "</tr>\n";
}

}  // namespace

Page::Page(std::string title, std::string subtitle)
    : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

void Page::section(const std::string& heading, const Html& content) {
  body_.text += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}\n</section>\n", anchor(heading),
                            escape(heading), content.text);
}

std::string Page::html() const {
  // The empty icon keeps browsers from asking a server for one.
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{0}</title>\n<style>{1}</style>\n</head>\n"
      "<body>\n<header>\n<h1>{0}</h1>\n{2}</header>\n<main>\n{3}</main>\n"
      "<footer>Made by tessera. This file needs no other file and no "
      "network.</footer>\n</body>\n</html>\n",
      escape(title_), kPageStyle, subtitle_.empty() ? "" : "<p>" + escape(subtitle_) + "</p>\n",
      body_.text);
}

Html paragraph(std::string_view text) { return {"<p>" + escape(text) + "</p>\n"}; }

Html preformatted(std::string_view text) { return {"<pre>" + escape(text) + "</pre>\n"}; }

Html folded(std::string_view summary, const Html& content) {
  return {"<details><summary>" + escape(summary) + "</summary>\n" + content.text + "</details>\n"};
}

Html grid(const std::vector<Html>& contents) {
  Html all{"<div class=\"grid\">\n"};
  for (const Html& content : contents) all.text += "<div>" + content.text + "</div>\n";
  return all + Html{"</div>\n"};
}

Html figures(const std::vector<std::pair<std::string, std::string>>& figures) {
  Html all{"<dl class=\"figures\">\n"};
  for (const auto& [name, value] : figures)
    all.text += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value));
  return all + Html{"</dl>\n"};
}

Html picture(std::string_view svg, std::string_view description) {
  return {fmt::format("<img src=\"data:image/svg+xml;base64,{}\" alt=\"{}\">\n", base64(svg),
                      escape(description))};
}

Html table(const Table& table) {
  Html all{"<div class=\"wide\"><table>\n<thead><tr>"};
  for (const Column& column : table.columns)
    all.text +=
        fmt::format("<th{}>{}</th>", column.numeric ? " class=\"n\"" : "", escape(column.name));
  all.text += "</tr></thead>\n<tbody>\n";
  for (const Row& row : table.rows) all.text += table_line(table, row);
  return all + Html{"</tbody></table></div>\n"};
}

}  // namespace tessera::report
