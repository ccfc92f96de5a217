#include "data/messages.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace sluice::data {
namespace {

std::string a_kind(const Json& value) {
  return value.is_array() || value.is_object() ? std::string("an ") + value.type_name()
         : value.is_null()                     ? "null"
                                               : std::string("a ") + value.type_name();
}

// What ShareGPT's files call the roles of others.
constexpr std::pair<std::string_view, const char*> kSpeakers[] = {
    {"human", "user"},    {"user", "user"},        {"gpt", "assistant"}, {"assistant", "assistant"},   {"chatgpt", "assistant"},
    {"system", "system"}, {"observation", "tool"}, {"tool", "tool"},     {"function_response", "tool"}};

const char* role_of(std::string_view speaker) {
  const auto* const found = std::ranges::find(kSpeakers, speaker, [](const auto& pair) { return pair.first; });
  return found == std::end(kSpeakers) ? nullptr : found->second;
}

bool is_share_gpt(const Json& message) {
  return message.is_object() && !message.contains("role") && message.contains("from") && message.contains("value");
}

std::optional<std::string> fault_of_share_gpt(const Json& message) {
  const Json &from = message["from"], &value = message["value"];
  if (!from.is_string()) return "has a from that is " + a_kind(from) + ", not a string";
  if (role_of(from.get_ref<const std::string&>()) == nullptr)
    return "is from " + from.dump() + ", which is none of human, gpt, system, user, assistant, tool";
  if (!value.is_string()) return "has a value that is " + a_kind(value) + ", not a string";
  return std::nullopt;
}

std::optional<std::string> fault_of_message(const Json& message) {
  if (!message.is_object()) return "is " + a_kind(message) + ", not an object with role and content";
  if (is_share_gpt(message)) return fault_of_share_gpt(message);
  const auto role = message.find("role");
  if (role == message.end()) return "has no role";
  if (!role->is_string()) return "has a role that is " + a_kind(*role) + ", not a string";
  const auto content = message.find("content");
  const bool fine = content == message.end() || content->is_string() || content->is_null() || content->is_array();
  if (!fine) return "has a content that is " + a_kind(*content) + ", not a string";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fault_of_messages(const Json& value) {
  if (!value.is_array()) return "it is " + a_kind(value) + ", not a list of messages";
  if (value.empty()) return "the list of messages is empty";
  for (size_t i = 0; i < value.size(); ++i) {
    if (const auto fault = fault_of_message(value[i])) return "message " + std::to_string(i + 1) + " " + *fault;
  }
  return std::nullopt;
}

Json with_roles(const Json& messages) {
  Json result = Json::array();
  for (const Json& message : messages) {
    if (!is_share_gpt(message)) {
      result.push_back(message);
      continue;
    }
    Json& renamed = result.emplace_back(Json::object());
    renamed["role"] = role_of(message["from"].get_ref<const std::string&>());
    renamed["content"] = message["value"];
    for (const auto& [key, value] : message.items()) {
      if (key != "from" && key != "value") renamed[key] = value;
    }
  }
  return result;
}

bool same_json(const Json& a, const Json& b) {
  if (a.is_object() && b.is_object()) {
    return a.size() == b.size() && std::ranges::all_of(a.items(), [&](const auto& item) {
             const auto other = b.find(item.key());
             return other != b.end() && same_json(item.value(), *other);
           });
  }
  if (a.is_array() && b.is_array()) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!same_json(a[i], b[i])) return false;
    }
    return true;
  }
  return a == b;
}

}  // namespace sluice::data
