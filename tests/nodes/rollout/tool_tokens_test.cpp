// What is trained on is what was sampled: with tools, thinking and the templates of all families.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/nodes/rollout/forced_sample.h"
#include "tests/nodes/sampling.h"
#include "tests/text/tokenizer_fixtures.h"
#include "tests/text/tool_call_fixtures.h"
#include "text/tool_calls/find_format.h"

namespace sluice::nodes::tool_tokens_test {
namespace {

using engine::Group;
using testing::ForcedSample;
using testing::params_with;
using testing::Sampling;
using testing::tiny_model;
using testing::TinyFolder;
using testing::tokens_of_sample;
using testing::tool_turns;

// Ids of a text as no tokenizer would cut it: a token for each byte that one stands for.
std::vector<int64_t> in_small_pieces(const text::Tokenizer& tokenizer, const std::string& text) {
  std::vector<int64_t> ids;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    for (const int64_t id : tokenizer.encode(text.substr(begin, end - begin))) ids.push_back(id);
    begin = end;
  }
  return ids;
}

// A model that writes what transformers writes for its turn, with thinking in front of it that the template would leave out
// later.
TEST(ToolTokens, ASequenceIsPromptTurnsAsSampledAndWhatTransformersWritesBetween) {
  const auto folder = text::real_tokenizer("qwen2");
  if (!folder) GTEST_SKIP() << "the tokenizers are not installed";
  const auto text = std::make_shared<ModelText>("actor", *folder);
  const text::Tokenizer& tokenizer = text->tokenizer();
  const int64_t end = tokenizer.token_to_id("<|im_end|>").value();
  int sequences = 0;
  for (const text::Family& family : text::kFamilies) {
    const auto chat = text::template_named(family.name, family.is_published);
    ASSERT_TRUE(chat.has_value()) << family.name;
    const text::ToolChat tool_chat(*chat, text::find_tool_call_format(*chat).value(), text::tools());
    for (const Json& expected : text::golden_lines(family.is_published ? "shared.jsonl" : "own.jsonl")) {
      const std::string conversation = expected.at("conversation").get<std::string>();
      const bool is_chosen = conversation == "tool_call" || conversation == "tool_calls";
      if (expected.at("template") != family.name || !is_chosen || expected.contains("error")) continue;
      if (expected.value("options", "") != "tools") continue;
      const Json& messages = text::inputs().at("conversations").at(conversation);
      const text::Cut parts = text::cut(expected.at("text").get<std::string>(), messages, family);
      if (!parts.after) continue;
      std::vector<std::string> answers;
      for (const Json& message : messages) {
        if (message.at("role") == "tool") answers.push_back(message.at("content").get<std::string>());
      }
      // Whatever token ends the turn takes the place of the template's own.
      const std::string thinking = "<think>\nWhich tool?\n</think>\n\n";
      std::vector<int64_t> turn = in_small_pieces(tokenizer, thinking + parts.turn);
      turn.push_back(end);
      std::vector<int64_t> last = in_small_pieces(tokenizer, "<think>\nSo.\n</think>\n\nSunny.");
      last.push_back(end);

      ForcedSample sample(tokenizer, tool_turns(text, tool_chat, answers), end);
      ASSERT_EQ(sample.say(turn), true) << family.name;
      EXPECT_EQ(sample.say(last), false);

      const std::vector<int64_t> given = tokenizer.encode(*parts.after);
      std::vector<int64_t> all = turn;
      all.insert(all.end(), given.begin(), given.end());
      all.insert(all.end(), last.begin(), last.end());
      EXPECT_EQ(sample.tokens(), all) << family.name << ": " << tokenizer.decode(sample.tokens());
      std::vector<bool> mask(turn.size(), true);
      mask.resize(turn.size() + given.size(), false);
      mask.resize(all.size(), true);
      EXPECT_EQ(sample.sampled(), mask);
      ++sequences;
    }
  }
  EXPECT_GE(sequences, 5);
}

enum class From { kPublished, kOwn, kForms };

const std::vector<std::pair<std::string, From>> kTemplates = {{"Qwen-Qwen2.5-7B-Instruct", From::kPublished},
                                                              {"Qwen-Qwen3-0.6B", From::kPublished},
                                                              {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", From::kPublished},
                                                              {"microsoft-Phi-3.5-mini-instruct", From::kPublished},
                                                              {"chatml", From::kOwn},
                                                              {"gemma2", From::kOwn},
                                                              {"generation", From::kOwn},
                                                              {"generation_nested", From::kOwn},
                                                              {"hermes_tools", From::kOwn},
                                                              {"llama31", From::kOwn},
                                                              {"mistral", From::kOwn},
                                                              {"olmo2", From::kOwn},
                                                              {"phi3", From::kOwn},
                                                              {"zephyr", From::kOwn},
                                                              {"actions", From::kForms},
                                                              {"channels", From::kForms},
                                                              {"fenced_sections", From::kForms},
                                                              {"fenced_text", From::kForms},
                                                              {"ids_for_names", From::kForms},
                                                              {"invoke_tags", From::kForms},
                                                              {"keys_and_values", From::kForms},
                                                              {"marked_strings", From::kForms},
                                                              {"name_and_json", From::kForms},
                                                              {"parameter_tags", From::kForms},
                                                              {"python_calls", From::kForms},
                                                              {"python_lines", From::kForms},
                                                              {"tags_of_keys", From::kForms},
                                                              {"told_strings", From::kForms},
                                                              {"wrapped_objects", From::kForms}};

std::optional<text::ChatTemplate> template_from(const std::string& name, From from) {
  if (from == From::kForms) return text::form_template(name);
  return text::template_named(name, from == From::kPublished);
}

// A model with random weights, all of whose turns end with what is taken for a malformed call.
TEST(ToolTokens, OfEveryTemplateTheActionsAreTheSampledTokensAndTheRestIsWhatTheTemplateWrites) {
  const TinyFolder folder;
  const std::shared_ptr<LanguageModel> model = tiny_model(folder.path(), {});
  const auto text = std::make_shared<ModelText>("actor", folder.path());
  const text::Tokenizer& tokenizer = text->tokenizer();
  for (const auto& [name, from] : kTemplates) {
    const auto chat = template_from(name, from);
    if (!chat) GTEST_SKIP() << "the published templates are not installed";
    const text::ToolChat tool_chat(*chat, {.open = "(", .close = ")"}, text::tools());
    GenerateParams params = params_with(4, 250);
    params.environment.type = "scripted";
    params.environment.object = tool_turns(text, tool_chat, {"never"});
    params.environment.metrics = {{.name = kToolCalls}, {.name = kFailedToolCalls}, {.name = kBrokenToolCalls}};
    params.turn_ends = {"("};
    params.ignore_end_of_sequence = true;
    const text::ToolResult failed{.call = {}, .text = "error: the call does not end with )"};
    const std::vector<int64_t> between = tokenizer.encode(tool_chat.after({&failed, 1}, ""));
    const std::vector<int64_t> prompt = tokenizer.encode("2+2=");
    size_t replies = 0;
    for (const Group& group : Sampling(params, model).run({"2+2="})) {
      for (size_t s = 0; s < 4; ++s) {
        const std::vector<int64_t> tokens = tokens_of_sample(group, s);
        const engine::Range actions = group.layout.actions_by_sample()[s];
        std::vector<bool> is_action(tokens.size(), false);
        for (size_t a = actions.begin; a < actions.end; ++a)
          is_action[static_cast<size_t>(group.layout.action_tokens[a] - group.layout.token_offsets[s])] = true;
        EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), tokens.begin()));
        for (size_t t = 0; t < prompt.size(); ++t) EXPECT_FALSE(is_action[t]);
        for (size_t t = prompt.size(); t < tokens.size(); ++t) {
          EXPECT_TRUE(is_action[t]) << name;
          if (tokenizer.decode(std::span(&tokens[t], 1)) != "(") continue;
          const size_t kept = std::min(between.size(), tokens.size() - t - 1);  // the last may be cut
          for (size_t i = 0; i < kept; ++i) {
            ASSERT_EQ(tokens[t + 1 + i], between[i]) << name << ": " << tokenizer.decode(tokens);
            EXPECT_FALSE(is_action[t + 1 + i]) << name;
          }
          t += kept;
          ++replies;
        }
      }
    }
    EXPECT_GE(replies, 1u) << name;
  }
}

}  // namespace
}  // namespace sluice::nodes::tool_tokens_test
