#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"

namespace sluice::text {

/// A tool that a model has called, or has tried to.
struct ToolCall {
  std::string id = {};  // as the model wrote it; mostly it writes none
  std::string name = {};
  Json arguments = Json::object();
  std::string fault = {};  // why it cannot be made, in words for the model; empty: it can. The rest is then what could be read
};

/// What a model wrote in one turn.
struct ParsedTurn {
  std::string thinking;         // without its marks
  std::string text;             // what is neither thinking nor a call
  std::vector<ToolCall> calls;  // in order
};

}  // namespace sluice::text
