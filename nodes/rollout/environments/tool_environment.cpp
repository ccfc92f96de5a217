#include "nodes/rollout/environments/tool_environment.h"

#include <chrono>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/prompts/conversation.h"
#include "nodes/rollout/environments/tool_servers.h"
#include "nodes/rollout/environments/tool_turns.h"
#include "text/tool_calls/find_format.h"

namespace sluice::nodes {
namespace {

Subprocess::Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Subprocess::Clock::duration>(std::chrono::duration<double>(count));
}

engine::ParamSet<ToolServerParams> server_keys() {
  using S = ToolServerParams;
  engine::ParamSet<S> keys;
  keys.param("command", &S::command).required().doc("the program and its arguments, without a shell");
  keys.param("folder", &S::folder).must_exist().doc("the folder that it works in; unset: that of rlhf-run");
  return keys;
}

std::string name_of(ToolFormat format) {
  for (const auto& [value, name] : enum_names(ToolFormat{})) {
    if (value == format) return name;
  }
  throw InternalError("a format of tool calls without a name");
}

text::ToolCallFormat format_of(ToolFormat format, const ModelText& model, const Json& variables) {
  if (format != ToolFormat::kAuto) return text::tool_call_format(name_of(format));
  if (const auto found = text::find_tool_call_format(model.chat_template(), variables)) return *found;
  throw UserError("the chat template of model '" + model.name() + "' writes no tool calls, so format = \"auto\" finds none",
                  "format = \"" + join(text::tool_call_formats(), "\", or \"") + "\"");
}

}  // namespace

void ToolEnvironment::describe(engine::Contract<ToolEnvironmentParams>& c) {
  using P = ToolEnvironmentParams;
  c.type(kType, "tools of servers that speak the Model Context Protocol, called as the model's chat template has it");
  c.param("format", &P::format).doc("how the model writes calls; auto: as its chat template does");
  c.tables("servers", &P::servers, server_keys()).required().doc("programs that have tools, and say so over stdin and stdout");
  c.param("workers", &P::workers)
      .between(1, 1024)
      .unit("processes")
      .doc("turns that are replied to at a time, each server so often");
  c.param("timeout_seconds", &P::timeout_seconds)
      .between(0, 1e6)
      .above(0)
      .harmless()
      .unit("seconds")
      .doc("calls of one turn that take longer are answered with an error");
  c.param("start_seconds", &P::start_seconds)
      .between(0, 1e6)
      .above(0)
      .harmless()
      .unit("seconds")
      .doc("a server that takes longer to start is an error");
  c.param("most_result_bytes", &P::most_result_bytes)
      .between(1, 1 << 24)
      .unit("bytes")
      .doc("a longer result is cut there, and says so");
  c.param("most_breakdowns", &P::most_breakdowns)
      .at_least(0)
      .harmless()
      .unit("calls")
      .doc("of one server, one after the other, that it did not answer: then the run ends; 0: it goes on");
  c.param("chat_variables", &P::chat_variables).doc("what else the chat template is told, as in the source: a JSON object");
  c.metric(kToolCalls, engine::Metric::kMean, "mean calls of tools in a response");
  c.metric(kFailedToolCalls, engine::Metric::kMean, "of these, those that were malformed, of no tool, or answered with an error");
  c.metric(kBrokenToolCalls, engine::Metric::kMean,
           "of the calls, those whose server ended, was late, or wrote what is no answer");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.servers.empty())
      findings.error("servers", "servers names no server: there would be no tools",
                     "servers = [{ command = [\"python3\", \"server.py\"] }]");
    for (const ToolServerParams& server : params.servers) {
      if (server.command.empty() || server.command.front().empty())
        findings.error("servers", "the command of a server names no program", "command = [\"python3\", \"server.py\"]");
    }
    check_chat_variables(params.chat_variables, /*uses_template=*/true, findings);
  });
}

std::shared_ptr<const Environment> ToolEnvironment::for_model(std::shared_ptr<const ModelText> text) const {
  const Json variables = chat_variables(params_.chat_variables);
  const text::ToolCallFormat format = format_of(params_.format, *text, variables);
  std::unique_ptr<ToolSource> first = servers();
  text::ToolChat chat(text->chat_template(), format, tool_schemas(first->list()), variables);
  const ToolLimits limits{.workers = params_.workers,
                          .turn = seconds(params_.timeout_seconds),
                          .result_bytes = static_cast<size_t>(params_.most_result_bytes),
                          .breakdowns = params_.most_breakdowns};
  return std::make_shared<ToolTurns>(std::move(text), std::move(chat), limits, std::move(first),
                                     [copy = *this] { return copy.servers(); });
}

Json ToolEnvironment::schemas() const { return tool_schemas(servers()->list()); }

std::unique_ptr<ToolSource> ToolEnvironment::servers() const {
  return std::make_unique<ToolServers>(params_.servers, seconds(params_.start_seconds));
}

Reply ToolEnvironment::reply(const Turn&) const { throw InternalError("tools are called as a model has it, and none was named"); }

}  // namespace sluice::nodes
