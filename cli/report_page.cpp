#include "cli/report_page.h"

#include "base/error.h"

namespace sluice::cli {
namespace {

std::string escaped(std::string_view text, std::string_view characters, std::string (*escape)(char)) {
  std::string out;
  for (const char c : text) out += characters.find(c) == std::string_view::npos ? std::string(1, c) : escape(c);
  return out;
}

std::string as_html(std::string_view text) {
  return escaped(text, "<>&\"'", [](char c) { return "&#" + std::to_string(static_cast<int>(c)) + ";"; });
}

// Inside of a script element only these could end it or begin a comment.
std::string as_data(const Json& json) {
  return escaped(json.dump(-1, ' ', true, Json::error_handler_t::replace), "<>&", [](char c) {
    return std::string(c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026");
  });
}

void put(std::string& page, std::string_view mark, std::string_view text) {
  const size_t at = page.find(mark);
  SLUICE_CHECK(at != std::string::npos, "the page has no place for " + std::string(mark));
  page.replace(at, mark.size(), text);
}

}  // namespace

// What comes from a run goes in last, where its place is the first one: what it holds is no mark.
std::string report_page(const std::string& title, const Json& report) {
  std::string page(program::embedded::kReportPage);
  put(page, "{{STYLE}}", program::embedded::kReportStyle);
  put(page, "{{SCRIPT}}", program::embedded::kReportScript);
  put(page, "{{DATA}}", as_data(report));
  put(page, "{{TITLE}}", as_html(title));
  return page;
}

}  // namespace sluice::cli
