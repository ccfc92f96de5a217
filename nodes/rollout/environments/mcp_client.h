#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/process/subprocess.h"
#include "nodes/rollout/environments/tool_source.h"

namespace sluice::nodes {

/// A program that has tools: { command = ["python3", "server.py"], folder = "." }.
struct ToolServerParams {
  std::vector<std::string> command;
  std::filesystem::path folder;
};

/// One server of the Model Context Protocol (modelcontextprotocol.io, revision 2025-06-18), a process that reads JSON-RPC
/// messages from its stdin and writes them to its stdout, a line each; its stderr is for people. It is asked for tools and
/// nothing else: it is told of no files, and may ask for nothing but a ping.
///
/// Every function is back by `wait.until`, and throws UserError, which names the command and shows the end of its stderr, when
/// the server has ended, was not in time, or wrote what is no message. Then nobody knows what its next lines would be for: the
/// client is to be dropped. The process ends with the client. Belongs to one thread at a time.
class McpClient {
 public:
  using Clock = Subprocess::Clock;

  /// Starts the program and greets it.
  McpClient(const ToolServerParams& server, const AnswerWait& wait);

  /// Throws UserError also for a tool without a name or with a schema that is no object.
  std::vector<Tool> list(const AnswerWait& wait);

  /// An error that the server tells by the protocol is an answer too.
  ToolAnswer call(const std::string& name, const Json& arguments, const AnswerWait& wait);

 private:
  struct Response;

  Response request(const char* method, Json params, const AnswerWait& wait);
  Json result_of(const char* method, Json params, const AnswerWait& wait);
  void send(const Json& message);
  std::string next_line(const AnswerWait& wait);
  Json next_message(const AnswerWait& wait);
  void answer_request(const Json& message);
  [[noreturn]] void fail(const std::string& what, const std::string& help = {}) const;

  const ToolServerParams server_;
  Subprocess process_;
  int64_t next_id_ = 1;
};

}  // namespace sluice::nodes
