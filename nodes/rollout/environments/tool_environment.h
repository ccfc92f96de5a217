#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/contract.h"
#include "nodes/rollout/environments/environment.h"
#include "nodes/rollout/environments/mcp_client.h"

namespace sluice::nodes {

/// How the model writes calls; see text/tool_calls/tool_call_format.h.
enum class ToolFormat { kAuto, kHermes, kMistral, kLlama3, kOpenai };

constexpr auto enum_names(ToolFormat) {
  return std::array{std::pair{ToolFormat::kAuto, "auto"}, std::pair{ToolFormat::kHermes, "hermes"},
                    std::pair{ToolFormat::kMistral, "mistral"}, std::pair{ToolFormat::kLlama3, "llama3"},
                    std::pair{ToolFormat::kOpenai, "openai"}};
}

/// Tools of servers that speak the Model Context Protocol, called as the model's own chat template has it.
///
///   environment = { type = "tools", servers = [{ command = ["python3", "server.py"], folder = "." }], workers = 4 }
///
/// A turn without a call is the model's answer, and ends the sample. After a turn with calls comes what the template writes: the
/// end of the message, the results, the head of the next. With format = "auto" calls are written as that template writes them.
/// Servers are started when the run starts: one that cannot be, or says nothing of its tools within start_seconds, ends it there.
/// Later a server that dies, hangs or answers rubbish is an error that the model reads as the result, and is started again; where
/// that is all that comes of most_breakdowns calls in a row, the run ends. All calls of one turn have timeout_seconds together. A
/// result is cut after most_result_bytes, with a note.
struct ToolEnvironmentParams {
  ToolFormat format = ToolFormat::kAuto;
  std::vector<ToolServerParams> servers;
  int64_t workers = 1;
  double timeout_seconds = 30;
  double start_seconds = 60;
  int64_t most_result_bytes = 16384;
  int64_t most_breakdowns = 50;
  std::string chat_variables;
};

class ToolEnvironment final : public Environment {
 public:
  static constexpr const char* kType = "tools";

  static void describe(engine::Contract<ToolEnvironmentParams>& contract);

  explicit ToolEnvironment(const ToolEnvironmentParams& params) : params_(params) {}

  /// Starts the servers. Throws UserError for one that fails, and where the template writes no calls and no format is named.
  std::shared_ptr<const Environment> for_model(std::shared_ptr<const ModelText> text) const override;

  /// Starts the servers, and gives what they have, as chat templates expect it. Throws UserError for one that fails.
  Json schemas() const;

  Reply reply(const Turn& turn) const override;
  int64_t most_calls() const override { return params_.workers; }

 private:
  std::unique_ptr<ToolSource> servers() const;

  ToolEnvironmentParams params_;
};

}  // namespace sluice::nodes
