#pragma once

#include <string>

#include "nodes/rollout/environments/mcp_client.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::testing {

/// A tool server with the tool `add`. `changes`: Python that replaces any of its functions.
inline std::string tool_server(const std::string& changes = {}) {
  return R"(
import json, os, sys, time
def say(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def tool(name): return {"name": name, "description": "adds", "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}}}
def initialize(params): return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {}}
def list_tools(params): return {"tools": [tool("add")]}
def text(text): return {"content": [{"type": "text", "text": text}]}
def call(name, arguments): return text(str(arguments["a"] + arguments["b"]))
)" + changes +
         R"(
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    params = message.get("params", {})
    if message["method"] == "initialize": result = initialize(params)
    elif message["method"] == "tools/list": result = list_tools(params)
    elif message["method"] == "tools/call": result = call(params["name"], params["arguments"])
    if result is not None: say(id=message["id"], result=result)
)";
}

/// The server as a file of `folder`.
inline ToolServerParams tool_server_in(const TemporaryFolder& folder, const std::string& changes = {},
                                       const std::string& name = "server.py") {
  folder.write(name, tool_server(changes));
  return {.command = {"python3", "-S", name}, .folder = folder.path()};
}

}  // namespace sluice::nodes::testing
