#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/process/subprocess.h"
#include "engine/contract/world/outside_work.h"

namespace sluice::nodes {

/// What a tool says of itself.
struct Tool {
  std::string name;
  std::string description;
  Json parameters;  // the JSON schema of its arguments, an object
};

/// As chat templates expect tools: {"type": "function", "function": {"name", "description", "parameters"}}, one each.
Json tool_schemas(const std::vector<Tool>& tools);

/// What came of a call.
struct ToolAnswer {
  std::string text;
  bool failed = false;                // the tool says so, or it could not be asked: then `text` says why, to a model
  std::string breakdown = {};         // why its server gave no answer, to a person; empty: it gave one, or nobody was asked
  std::optional<size_t> server = {};  // that was asked, of those of the source
};

/// Until when an answer is waited for, and who hears that it is. What `outside` throws is passed on; then nobody knows what the
/// next words of a server would be for, and who asked is to drop it. A value: a time alone is one of which nobody hears.
struct AnswerWait {
  AnswerWait(Subprocess::Clock::time_point until, engine::OutsideWait outside = {}) : until(until), outside(outside) {}  // NOLINT

  Subprocess::Clock::time_point until;
  engine::OutsideWait outside;
};

/// Whoever has tools. Belongs to one thread at a time.
class ToolSource {
 public:
  virtual ~ToolSource() = default;

  /// The tools, in an order that does not change. Throws UserError where they cannot be had.
  virtual std::vector<Tool> list() = 0;

  /// Calls the tool of that name, and is back by `wait.until`. What goes wrong with the tool is its answer.
  virtual ToolAnswer call(const std::string& name, const Json& arguments, const AnswerWait& wait) = 0;
};

}  // namespace sluice::nodes
