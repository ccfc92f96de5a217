#include "nodes/rollout/environments/tool_servers.h"

#include <utility>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

std::string on_one_line(const Problem& problem) {
  std::string text = problem.message;
  for (const std::string& note : problem.notes) text += "; " + note;
  return text;
}

}  // namespace

ToolServers::ToolServers(std::vector<ToolServerParams> servers, Subprocess::Clock::duration start) : start_(start) {
  for (ToolServerParams& params : servers) servers_.push_back({.params = std::move(params), .client = nullptr});
}

McpClient& ToolServers::client(Server& server, const engine::OutsideWait& outside) const {
  if (!server.client)
    server.client = std::make_unique<McpClient>(server.params, AnswerWait(Subprocess::Clock::now() + start_, outside));
  return *server.client;
}

std::vector<Tool> ToolServers::list() {
  std::vector<Tool> all;
  places_.clear();
  for (size_t index = 0; index < servers_.size(); ++index) {
    Server& server = servers_[index];
    for (Tool& tool : client(server).list(Subprocess::Clock::now() + start_)) {
      const auto [other, is_new] = places_.emplace(tool.name, index);
      if (!is_new && other->second == index)
        throw UserError(
            "the tool server " + sluice::quoted(join(server.params.command, " ")) + " has two tools " + sluice::quoted(tool.name),
            "give one of them another name");
      if (!is_new)
        throw UserError("the tool servers " + sluice::quoted(join(servers_[other->second].params.command, " ")) + " and " +
                            sluice::quoted(join(server.params.command, " ")) + " both have a tool " + sluice::quoted(tool.name),
                        "leave one of them out, or give the tool another name");
      all.push_back(std::move(tool));
    }
  }
  return all;
}

ToolAnswer ToolServers::call(const std::string& name, const Json& arguments, const AnswerWait& wait) {
  if (places_.empty()) list();
  const auto place = places_.find(name);
  if (place == places_.end())
    return {.text = "error: there is no tool " + sluice::quoted(name) + ", the tools are " + names(), .failed = true};
  Server& server = servers_[place->second];
  ToolAnswer answer;
  try {
    const auto begin = Subprocess::Clock::now();
    McpClient& asked = client(server, wait.outside);
    answer = asked.call(name, arguments, {wait.until + (Subprocess::Clock::now() - begin), wait.outside});
  } catch (const UserError& error) {
    server.client.reset();
    const bool is_late = Subprocess::Clock::now() >= wait.until;
    answer = {.text = is_late ? "error: the tool did not answer in time" : "error: the tool broke off without an answer",
              .failed = true,
              .breakdown = on_one_line(error.problems().front())};
  }
  answer.server = place->second;
  return answer;
}

std::string ToolServers::names() const {
  std::vector<std::string> names;
  for (const auto& [name, server] : places_) names.push_back(name);
  return join(names, ", ");
}

}  // namespace sluice::nodes
