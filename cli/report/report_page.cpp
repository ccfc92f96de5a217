#include "cli/report/report_page.h"

#include "base/error.h"
#include "text/tokenizer/base64.h"

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

// 'sha256-...' of a text whose hash in hex this is.
std::string source_of(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return "'sha256-" + text::to_base64(bytes) + "'";
}

void put(std::string& page, std::string_view mark, std::string_view text) {
  const size_t at = page.find(mark);
  SLUICE_CHECK(at != std::string::npos, "the page has no place for " + std::string(mark));
  page.replace(at, mark.size(), text);
}

}  // namespace

std::string report_policy(PageIs page_is) {
  namespace embedded = program::embedded;
  const bool served = page_is == PageIs::kServed;
  return "default-src 'none'; style-src " + source_of(embedded::kReportStyleSha256) + "; script-src " +
         source_of(embedded::kReportScriptSha256) + (served ? " " + source_of(embedded::kReportLiveScriptSha256) : "") +
         "; img-src data:" + (served ? "; connect-src 'self'" : "") + "; base-uri 'none'; form-action 'none'";
}

// Inside of a script element only these could end it or begin a comment.
std::string report_data(const Json& report) {
  return escaped(report.dump(-1, ' ', true, Json::error_handler_t::replace), "<>&", [](char c) {
    return std::string(c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026");
  });
}

// What comes from a run goes in last, where its place is the first one: what it holds is no mark.
std::string report_page(PageIs page_is, const std::string& title, const Json& report) {
  namespace embedded = program::embedded;
  std::string page(embedded::kReportPage);
  put(page, "{{POLICY}}", report_policy(page_is));
  put(page, "{{STYLE}}", embedded::kReportStyle);
  put(page, "{{SCRIPT}}", embedded::kReportScript);
  put(page, "{{LIVE}}",
      page_is == PageIs::kServed ? "<script>" + std::string(embedded::kReportLiveScript) + "</script>\n" : std::string());
  put(page, "{{DATA}}", report_data(report));
  put(page, "{{TITLE}}", as_html(title));
  return page;
}

}  // namespace sluice::cli
