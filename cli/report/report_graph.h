#pragma once

#include <string>

#include "base/json/json.h"

namespace sluice::cli {

/// A graph in the language of Graphviz for a page: {"svg": base64} where the program `dot` is installed and draws it within
/// seconds, else {"dot": text}. Null: it is too large for a page.
Json report_graph(const std::string& dot);

}  // namespace sluice::cli
