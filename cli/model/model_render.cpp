#include <iostream>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "cli/model/commands.h"
#include "cli/process/exit_codes.h"
#include "cli/terminal/terminal.h"
#include "text/chat/chat_template.h"

namespace sluice::cli {
namespace {

struct Conversation {
  Json messages;
  text::ChatOptions options;
};

// An array of messages, or an object with "messages" and whatever else the template knows.
Conversation conversation_of(const Json& input, const std::string& place, bool generation_prompt) {
  Conversation chat;
  chat.options.add_generation_prompt = generation_prompt;
  if (input.is_array()) {
    chat.messages = input;
    return chat;
  }
  if (!input.is_object() || !input.contains("messages"))
    throw UserError(place + ": expected an array of messages, or an object with \"messages\"");
  for (const auto& [key, value] : input.items()) {
    if (key == "messages") {
      chat.messages = value;
    } else if (key == "tools") {
      chat.options.tools = value;
    } else if (key == "documents") {
      chat.options.documents = value;
    } else if (key == "add_generation_prompt") {
      if (!value.is_boolean()) throw UserError(place + ": add_generation_prompt must be true or false");
      chat.options.add_generation_prompt = value.get<bool>();
    } else {
      chat.options.variables[key] = value;
    }
  }
  return chat;
}

void answer(const text::ChatTemplate& chat_template, const RenderArguments& arguments, const Json& input,
            const std::string& place) {
  const Conversation chat = conversation_of(input, place, arguments.generation_prompt);
  Json output;
  try {
    if (arguments.mask) {
      const text::MaskedChat masked = chat_template.render_with_mask(chat.messages, chat.options);
      output = {{"text", masked.text}, {"assistant", masked.assistant}};
    } else {
      output = chat_template.render(chat.messages, chat.options);
    }
  } catch (const UserError& error) {
    Problems problems = error.problems();
    for (Problem& problem : problems) problem.notes.insert(problem.notes.begin(), "while rendering " + place);
    throw UserError(std::move(problems));
  }
  print_text(output.dump() + "\n");
  std::fflush(stdout);
}

// The JSON of one line; nothing when the line is not all of it.
std::optional<Json> whole_json(const std::string& line) {
  try {
    return parse_json(line, "standard input");
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

int model_render(const RenderArguments& arguments) {
  const text::ChatTemplate chat_template = arguments.template_file.empty()
                                               ? text::ChatTemplate::load(arguments.folder)
                                               : text::ChatTemplate::load(arguments.folder, arguments.template_file);
  std::string line, passed;
  bool answered = false;
  for (int64_t number = 1; std::getline(std::cin, line); ++number) {
    passed += line + "\n";
    if (trim(line).empty()) continue;
    const std::string place = "standard input, line " + std::to_string(number);
    const std::optional<Json> input = answered ? parse_json(line, "standard input", number) : whole_json(line);
    if (!input) {  // the first line is no JSON by itself: all of them together may be
      passed.append(std::istreambuf_iterator<char>(std::cin), {});
      answer(chat_template, arguments, parse_json(passed, "standard input"), "standard input");
      return kDone;
    }
    answered = true;
    answer(chat_template, arguments, *input, place);
    passed.clear();
  }
  return kDone;
}

}  // namespace sluice::cli
