#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "tests/text/chat_template_fixtures.h"

namespace sluice::text {

/// A template that writes tool calls, and what it writes around a turn of the model.
struct Family {
  std::string name;
  bool is_published;
  std::string format;
  std::string begin;
  std::string end;
};

inline const std::vector<Family> kFamilies = {
    {"Qwen-Qwen2.5-7B-Instruct", true, "hermes", "<|im_start|>assistant\n", "<|im_end|>"},
    {"Qwen-Qwen3-0.6B", true, "hermes", "<|im_start|>assistant\n", "<|im_end|>"},
    {"hermes_tools", false, "hermes", "<|im_start|>assistant", "<|im_end|>"},
    {"llama31", false, "llama3", "<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"},
    {"mistral", false, "mistral", "[/INST]", "</s>"},
};

inline const Json& inputs() {
  static const Json all = read_json(golden_chat_folder() / "inputs.json");
  return all;
}

/// Nothing where the published templates are not installed.
inline std::optional<ChatTemplate> template_named(const std::string& name, bool is_published) {
  const auto source =
      is_published ? published_template(name) : std::optional(read_file(golden_chat_folder() / "templates" / (name + ".jinja")));
  if (!source) return std::nullopt;
  return ChatTemplate(*source, name, inputs().at("special_tokens"));
}

/// A short template of our own in a form in which published models write calls.
inline ChatTemplate form_template(const std::string& name) {
  return ChatTemplate(read_file(golden_chat_folder() / "forms" / (name + ".jinja")), name, inputs().at("special_tokens"));
}

inline Json tools() { return inputs().at("options").at("tools").at("tools"); }

/// A text of transformers, cut at the turn that calls.
struct Cut {
  std::string prompt;
  std::string turn;
  std::optional<std::string>
      after;  // up to the next turn, which is yet to come: some templates write it differently once it is there
};

inline Cut cut(const std::string& text, const Json& messages, const Family& family) {
  const Json& user = *std::ranges::find_if(messages, [](const Json& message) { return message.at("role") == "user"; });
  const std::string asked = user.at("content").get<std::string>();
  const size_t begin = text.find(family.begin, text.rfind(asked + family.begin.substr(0, 1))) + family.begin.size();
  const size_t end = text.find(family.end, begin);
  Cut parts{.prompt = text.substr(0, begin), .turn = text.substr(begin, end - begin), .after = std::nullopt};
  if (messages.back().at("role") == "tool") parts.after = text.substr(end + family.end.size());
  if (family.is_published)
    parts.after = text.substr(end + family.end.size(), text.find("Sunny, 2", end) - end - family.end.size());
  return parts;
}

}  // namespace sluice::text
