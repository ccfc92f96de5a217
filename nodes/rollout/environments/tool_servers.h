#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nodes/rollout/environments/mcp_client.h"

namespace sluice::nodes {

/// The tools of several servers (mcp_client.h), each a process that the first need of it starts. One that breaks down is ended,
/// and started again by the next call of a tool of its; the answer tells why.
class ToolServers final : public ToolSource {
 public:
  /// `start`: the longest that a server may take to start and to say what it has.
  ToolServers(std::vector<ToolServerParams> servers, Subprocess::Clock::duration start);

  /// In the order of the servers. Throws UserError also where two tools have the same name.
  std::vector<Tool> list() override;

  /// Where the server has to be started, it is back later by the time that this takes.
  ToolAnswer call(const std::string& name, const Json& arguments, const AnswerWait& wait) override;

 private:
  struct Server {
    ToolServerParams params;
    std::unique_ptr<McpClient> client;  // null: it is to be started
  };

  McpClient& client(Server& server, const engine::OutsideWait& outside = {}) const;
  std::string names() const;

  const Subprocess::Clock::duration start_;
  std::vector<Server> servers_;
  std::map<std::string, size_t> places_;  // of tools, the index of their server
};

}  // namespace sluice::nodes
