#include "text/jinja/filters.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/text/strings.h"

namespace sluice::text::jinja {
namespace {

// Filters of Jinja that make web pages, or that give something else each time.
constexpr std::array<std::string_view, 8> kUnsupported = {"filesizeformat", "pprint",   "random",  "striptags",
                                                          "urlize",         "wordwrap", "xmlattr", "urlencode"};

using Table = std::unordered_map<std::string_view, Function>;

const Table& table() {
  static const Table kTable = [] {
    Table all;
    for (const NamedFunction* list : {text_filters(), number_filters(), sequence_filters(), selection_filters()}) {
      for (; !list->name.empty(); ++list) all.emplace(list->name, list->function);
    }
    return all;
  }();
  return kTable;
}

}  // namespace

Function find_filter(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : found->second;
}

std::string unknown_filter(std::string_view name) {
  if (std::find(kUnsupported.begin(), kUnsupported.end(), name) != kUnsupported.end())
    return "the filter '" + std::string(name) + "' is not supported in a chat template";
  std::vector<std::string> names;
  for (const auto& [known, function] : table()) names.emplace_back(known);
  std::sort(names.begin(), names.end());
  const std::string nearest = did_you_mean(name, names);
  return "there is no filter " + sluice::quoted(name.substr(0, 100)) +
         (nearest.empty() ? "" : "; did you mean '" + nearest + "'?");
}

}  // namespace sluice::text::jinja
