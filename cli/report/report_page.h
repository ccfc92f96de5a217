#pragma once

#include <string>
#include <string_view>

#include "base/json/json.h"

namespace sluice::program::embedded {

// Sources of the page, in cli/report/ (sluice_embed in cmake/Modules.cmake).
extern const std::string_view kReportPage;   // page.html
extern const std::string_view kReportStyle;  // page.css
extern const std::string_view kReportStyleSha256;
extern const std::string_view kReportScript;  // page.js
extern const std::string_view kReportScriptSha256;
extern const std::string_view kReportLiveScript;  // live.js
extern const std::string_view kReportLiveScriptSha256;

}  // namespace sluice::program::embedded

namespace sluice::cli {

/// In a file the page needs nothing else and may load nothing; one that is served asks its server for newer data.
enum class PageIs { kFile, kServed };

/// What a browser lets the page do (Content-Security-Policy): our own style and scripts, by their hashes, and nothing else.
std::string report_policy(PageIs page_is);

/// One HTML file: style, script, and `report` as data. Whatever the data hold, it stays text: the page takes it as JSON in which
/// no markup can begin.
std::string report_page(PageIs page_is, const std::string& title, const Json& report);

/// `report` as such JSON.
std::string report_data(const Json& report);

}  // namespace sluice::cli
