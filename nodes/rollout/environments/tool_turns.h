#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "nodes/models/model_text.h"
#include "nodes/rollout/environments/environment.h"
#include "nodes/rollout/environments/server_breakdowns.h"
#include "nodes/rollout/environments/tool_source.h"
#include "text/tool_calls/tool_chat.h"

namespace sluice::nodes {

// Metrics: of what its replies count.
inline constexpr const char* kToolCalls = "rollout/tool_calls_mean";
inline constexpr const char* kFailedToolCalls = "rollout/failed_tool_calls_mean";
inline constexpr const char* kBrokenToolCalls = "rollout/broken_tool_calls_mean";

struct ToolLimits {
  int64_t workers = 1;                                          // turns that are replied to at a time
  Subprocess::Clock::duration turn = std::chrono::seconds(30);  // for all calls of one turn
  size_t result_bytes = 16384;                                  // of one answer
  int64_t breakdowns = 50;                                      // of one server in a row that end the run; 0: none do
};

/// Replies to the turns of a model with what its tools answer to the calls in them, as its chat template has it. A turn without a
/// call is the model's last. A call that is malformed, or of a tool that is not there, or that failed, is answered with the
/// reason: the model may try again. So is one whose server broke down, of which warnings tell; a server that does nothing else
/// ends the run (server_breakdowns.h).
class ToolTurns final : public Environment {
 public:
  using Open = std::function<std::unique_ptr<ToolSource>()>;

  /// `opened`: the first source that calls are given to; `open` makes more of them, at most one for each worker at work. `text`
  /// is that of the chat's template.
  ToolTurns(std::shared_ptr<const ModelText> text, text::ToolChat chat, ToolLimits limits, std::unique_ptr<ToolSource> opened,
            Open open);

  Reply reply(const Turn& turn) const override;
  int64_t most_calls() const override { return limits_.workers; }

 private:
  std::unique_ptr<ToolSource> take() const;
  void give_back(std::unique_ptr<ToolSource> source) const;
  std::vector<ToolAnswer> answers(const std::vector<text::ToolCall>& calls, const Turn& turn) const;
  std::string shortened(std::string text) const;

  const std::shared_ptr<const ModelText> text_;
  const text::ToolChat chat_;
  const ToolLimits limits_;
  const Open open_;
  mutable ServerBreakdowns breakdowns_;
  mutable std::mutex mutex_;  // guards the list, not what is in it
  mutable std::vector<std::unique_ptr<ToolSource>> idle_;
};

}  // namespace sluice::nodes
