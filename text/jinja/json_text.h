#pragma once

#include <string>

#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// How Python's json.dumps writes; the defaults are those of the tojson filter of chat templates (no HTML escapes).
struct JsonStyle {
  bool ensure_ascii = false;
  bool indented = false;
  std::string indent;  // of one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// Throws Failure for what JSON has no form for (undefined, a generator, a namespace).
std::string json_text(Sandbox& sandbox, const Value& value, const JsonStyle& style);

}  // namespace sluice::text::jinja
