#include "data/messages.h"

#include <algorithm>

namespace sluice::data {
namespace {

std::string a_kind(const Json& value) {
  return value.is_array() || value.is_object() ? std::string("an ") + value.type_name()
         : value.is_null()                     ? "null"
                                               : std::string("a ") + value.type_name();
}

std::optional<std::string> fault_of_message(const Json& message) {
  if (!message.is_object()) return "is " + a_kind(message) + ", not an object with role and content";
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
