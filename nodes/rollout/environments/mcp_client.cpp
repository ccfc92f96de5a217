#include "nodes/rollout/environments/mcp_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text/shown_text.h"
#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

constexpr const char* kRevision = "2025-06-18";  // of the protocol
constexpr size_t kMostMessage = 16 << 20;
constexpr size_t kShownMessage = 200;
constexpr size_t kShownStderr = 600;
constexpr int kMostPages = 1000;         // of a list of tools
constexpr int kMethodNotFound = -32601;  // JSON-RPC 2.0

SubprocessOptions options_of(const ToolServerParams& server) {
  return {.arguments = server.command,
          .environment = {},
          .folder = server.folder,
          .inherited = {},
          .user = {},
          .most_output = kMostMessage};
}

std::string name_of(const ToolServerParams& server) { return "tool server " + sluice::quoted(join(server.command, " ")); }

std::string string_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The end of a stderr, in whole lines where there are several, on one.
std::string last_words_of(const std::string& errors) {
  const std::string_view text = trim(errors);
  std::string_view end = text.substr(text.size() - std::min(text.size(), kShownStderr));
  if (end.size() < text.size() && end.find('\n') != std::string_view::npos) end.remove_prefix(end.find('\n'));
  std::vector<std::string> lines;
  for (const std::string& line : split(end, '\n')) {
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  }
  return join(lines, " | ");
}

// A part of an answer, as text. Nothing: it is none of the protocol.
std::optional<std::string> text_of_part(const Json& part) {
  if (!part.is_object()) return std::nullopt;
  const std::string type = string_in(part, "type");
  const auto text = part.find("text");
  if (type == "text") return text != part.end() && text->is_string() ? std::optional(text->get<std::string>()) : std::nullopt;
  if (type == "resource" && part.contains("resource") && part["resource"].contains("text"))
    return string_in(part["resource"], "text");
  return "[" + (type.empty() ? "something that is no text" : type) + "]";
}

// Likewise.
std::optional<std::string> text_of_result(const Json& result) {
  const auto content = result.find("content"), structured = result.find("structuredContent");
  const bool has_content = content != result.end();
  if (has_content && !content->is_array()) return std::nullopt;
  std::vector<std::string> texts;
  for (const Json& part : has_content ? *content : Json::array()) {
    const auto text = text_of_part(part);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  if (texts.empty() && structured != result.end()) return structured->dump(-1, ' ', false, Json::error_handler_t::replace);
  return join(texts, "\n");
}

}  // namespace

// One of the two is there.
struct McpClient::Response {
  std::optional<Json> result;
  std::string error;
};

McpClient::McpClient(const ToolServerParams& server, const AnswerWait& wait) : server_(server), process_(options_of(server)) {
  const Json greeting = {
      {"protocolVersion", kRevision}, {"capabilities", Json::object()}, {"clientInfo", {{"name", "sluice"}, {"version", "1"}}}};
  const Json reply = result_of("initialize", greeting, wait);
  if (string_in(reply, "protocolVersion").empty()) fail("its reply to initialize names no protocolVersion");
  send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
}

std::vector<Tool> McpClient::list(const AnswerWait& wait) {
  std::vector<Tool> tools;
  Json params = Json::object();
  for (int page = 0; page < kMostPages; ++page) {
    const Json reply = result_of("tools/list", params, wait);
    const auto listed = reply.find("tools");
    if (listed == reply.end() || !listed->is_array()) fail("its reply to tools/list has no list of tools");
    for (const Json& tool : *listed) {
      const bool is_tool = tool.is_object() && !string_in(tool, "name").empty();
      if (!is_tool) fail("it lists a tool without a name");
      Json parameters = tool.value("inputSchema", Json::object());
      if (!parameters.is_object())
        fail("the inputSchema of its tool " + sluice::quoted(string_in(tool, "name")) + " is no object");
      tools.push_back({string_in(tool, "name"), string_in(tool, "description"), std::move(parameters)});
    }
    const std::string cursor = string_in(reply, "nextCursor");
    if (cursor.empty() && tools.empty()) fail("it has no tools", "leave it out of servers");
    if (cursor.empty()) return tools;
    params["cursor"] = cursor;
  }
  fail("its list of tools does not end");
}

ToolAnswer McpClient::call(const std::string& name, const Json& arguments, const AnswerWait& wait) {
  Response response = request("tools/call", {{"name", name}, {"arguments", arguments}}, wait);
  if (!response.result) return {.text = "error: " + response.error, .failed = true};
  const auto error = response.result->find("isError");
  const bool failed = error != response.result->end() && error->is_boolean() && error->get<bool>();
  const auto text = text_of_result(*response.result);
  if (!text)
    return {.text = "error: the answer of the tool is none of its protocol",
            .failed = true,
            .breakdown = name_of(server_) + ": its answer is none of the protocol"};
  return {.text = *text, .failed = failed};
}

Json McpClient::result_of(const char* method, Json params, const AnswerWait& wait) {
  Response response = request(method, std::move(params), wait);
  if (!response.result)
    fail("its reply to " + std::string(method) + " is an error: " + shown_text(response.error, kShownMessage));
  return *std::move(response.result);
}

// Waits for: the response. Ends when: it came, the server failed, or it is `wait.until`. What the server asks meanwhile is
// answered, and what it notifies of is passed over.
McpClient::Response McpClient::request(const char* method, Json params, const AnswerWait& wait) {
  const int64_t id = next_id_++;
  send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
  while (true) {
    const Json message = next_message(wait);
    if (message.contains("method")) {
      if (message.contains("id")) answer_request(message);
      continue;
    }
    if (message.value("id", Json()) != Json(id))
      fail("it answered what nobody asked: " + shown_text(message.dump(), kShownMessage));
    if (const auto result = message.find("result"); result != message.end() && result->is_object()) return {*result, {}};
    const auto error = message.find("error");
    if (error == message.end() || !error->is_object()) fail("its reply to " + std::string(method) + " has no result");
    return {std::nullopt, string_in(*error, "message")};
  }
}

void McpClient::answer_request(const Json& message) {
  Json reply = {{"jsonrpc", "2.0"}, {"id", message["id"]}};
  if (string_in(message, "method") == "ping")
    reply["result"] = Json::object();
  else
    reply["error"] = {{"code", kMethodNotFound}, {"message", "this client has tools called, and nothing else"}};
  send(reply);
}

void McpClient::send(const Json& message) { process_.send(message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"); }

Json McpClient::next_message(const AnswerWait& wait) {
  std::string line = next_line(wait);
  while (trim(line).empty()) line = next_line(wait);
  Json message;
  std::string why;
  try {
    message = parse_json(line, "message");
  } catch (const UserError& error) {
    const Problem& problem = error.problems().front();
    why = " (" + (problem.caret.empty() ? problem.message : problem.caret) + ")";
  }
  if (!message.is_object())
    fail("it wrote a line that is no JSON-RPC message: " + shown_text(line, kShownMessage) + why,
         "what is for people goes to stderr");
  return message;
}

// Waits for: a line of its stdout. Ends when: one came, the process ended or wrote too much, or it is `wait.until`.
std::string McpClient::next_line(const AnswerWait& wait) {
  Subprocess* const only = &process_;
  while (true) {
    const bool late = Clock::now() >= wait.until;  // even of a server that writes without end
    if (late) fail("it did not answer in time", "start_seconds and timeout_seconds of the environment say how long it may take");
    if (auto line = process_.take_line()) return *std::move(line);
    if (process_.ended()) fail("it " + process_.how_it_ended());
    if (process_.overflowed()) fail("it wrote more than 16 MiB without an end of a line");
    wait.outside.go_on();
    Subprocess::exchange({&only, 1}, std::min<Clock::time_point>(wait.until, Clock::now() + engine::OutsideWait::kLook));
  }
}

void McpClient::fail(const std::string& what, const std::string& help) const {
  Problem problem;
  problem.message = name_of(server_) + ": " + what;
  problem.help = help;
  if (const std::string words = last_words_of(process_.errors()); !words.empty())
    problem.notes.push_back("its stderr ends with: " + words);
  throw UserError(std::move(problem));
}

}  // namespace sluice::nodes
