#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace sluice::program::embedded {

// Sources of the page, in cli/report/ (sluice_embed in cmake/Modules.cmake).
extern const std::string_view kReportPage;    // page.html
extern const std::string_view kReportStyle;   // page.css
extern const std::string_view kReportScript;  // page.js

}  // namespace sluice::program::embedded

namespace sluice::cli {

/// One HTML file that needs nothing else: style, script, and `report` as data. Whatever the data hold, it stays text: the page
/// takes it as JSON in which no markup can begin, and may load nothing.
std::string report_page(const std::string& title, const Json& report);

}  // namespace sluice::cli
