// Samples with tools as `generate` puts them together, for the comparison with published templates
// (tests/oracles/tool_templates.py). usage: sluice_tool_tokens_lines TOKENIZER_FOLDER
//
// One JSON object a line: {"template", "special_tokens", "tools", "turns": [[id]], "end": id, "answers": ["..."]}: what a model
// samples, turn by turn. One answer a line: {"tokens": [id], "sampled": [true]} or {"error"}.
#include <iostream>
#include <memory>
#include <string>

#include "base/error.h"
#include "tests/nodes/rollout/forced_sample.h"
#include "text/tool_calls/find_format.h"

namespace {

using namespace sluice;

Json answer(const std::string& line, const std::shared_ptr<const nodes::ModelText>& model) try {
  const Json input = parse_json(line, "input");
  const text::ChatTemplate chat(input.at("template").get<std::string>(), "template", input.at("special_tokens"));
  const auto format = text::find_tool_call_format(chat);
  const text::ToolChat tool_chat(chat, format ? *format : text::tool_call_format("hermes"), input.at("tools"));
  const auto answers = input.at("answers").get<std::vector<std::string>>();
  nodes::testing::ForcedSample sample(model->tokenizer(), nodes::testing::tool_turns(model, tool_chat, answers),
                                      input.at("end").get<int64_t>());
  for (const Json& turn : input.at("turns")) {
    const auto goes_on = sample.say(turn.get<std::vector<int64_t>>());
    if (!goes_on) return {{"error", "the turn did not end"}};
    if (!*goes_on) break;
  }
  return {{"tokens", sample.tokens()}, {"sampled", sample.sampled()}};
} catch (const UserError& error) {
  return {{"error", error.what()}};
}

}  // namespace

int main(int, char** arguments) {
  const auto model = std::make_shared<nodes::ModelText>("actor", arguments[1]);
  for (std::string line; std::getline(std::cin, line);) std::cout << answer(line, model).dump() << "\n";
}
