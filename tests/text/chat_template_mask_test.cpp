// The assistant's part of templates without generation blocks, found by rendering what came before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/text/chat_template_fixtures.h"

namespace sluice::text::chat_template_mask_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr const char* kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt "
    "%}<|im_start|>assistant\n{% endif %}";

Json turns() {
  return parse_json(
      R"([{"role": "user", "content": "Hé"}, {"role": "assistant", "content": "Größe"}, {"role": "user", "content": "B"}, {"role": "assistant", "content": "C"}])",
      "turns");
}

std::vector<std::string> spoken(const MaskedChat& chat) {
  std::vector<std::string> parts;
  for (const auto& [begin, end] : chat.assistant) parts.push_back(chat.text.substr(begin, end - begin));
  return parts;
}

TEST(AssistantMask, IsWhatFollowsThePromptOfEachTurn) {
  const ChatTemplate chat(kChatMl, "chatml");
  EXPECT_THAT(spoken(chat.render_with_mask(turns())), ElementsAre("Größe<|im_end|>\n", "C<|im_end|>\n"));
}

TEST(AssistantMask, HasAPartForEachBlockThoughSomeTouchOrAreEmpty) {
  const ChatTemplate chat("{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}", "bare");
  const MaskedChat masked = chat.render_with_mask(parse_json(
      R"([{"role": "assistant", "content": "ab"}, {"role": "assistant", "content": ""}, {"role": "assistant", "content": "c"}])",
      "touching"));
  EXPECT_THAT(masked.parts, ElementsAre(Pair(0, 2), Pair(2, 2), Pair(2, 3)));
  EXPECT_THAT(masked.assistant, ElementsAre(Pair(0, 3)));
}

TEST(AssistantMask, CoversNothingOfAGenerationPrompt) {
  const ChatTemplate chat(kChatMl, "chatml");
  const MaskedChat masked =
      chat.render_with_mask(parse_json(R"([{"role": "user", "content": "A"}])", "one"), {.add_generation_prompt = true});
  EXPECT_TRUE(masked.text.ends_with("assistant\n"));
  EXPECT_THAT(masked.assistant, IsEmpty());
}

TEST(AssistantMask, RefusesATemplateThatRewritesEarlierTurns) {
  const ChatTemplate chat(
      "{% for m in messages %}{% if m.role == 'user' %}U{{ m.content }}{% else %}A{{ m.content if loop.last else '...' }}{% "
      "endif %}{% endfor %}",
      "rewriting");
  EXPECT_THAT(error_of([&] { chat.render_with_mask(turns()); }),
              AllOf(HasSubstr("rewriting: what the assistant says in message 1"), HasSubstr("once other messages follow"),
                    HasSubstr("{% generation %}")));
}

// As Qwen3 writes it: a thought is dropped once others follow, and the last turn has an empty one.
TEST(AssistantMask, OfEarlierTurnsIsWhatIsLeftOfThem) {
  const ChatTemplate chat(
      "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% if loop.last %}<think></think>{{ m.content }}{% "
      "else %}{{ m.content.split('</think>')[-1] }}{% endif %}{% else %}{{ m.content }}{% endif %}<end>\n{% endfor %}{% if "
      "add_generation_prompt %}<assistant>{% endif %}",
      "thinking");
  Json messages = turns();
  messages[1]["content"] = "<think>hm</think>Größe \n";
  EXPECT_THAT(spoken(chat.render_with_mask(messages)), ElementsAre("Größe \n<end>\n", "<think></think>C<end>\n"));
  messages[1]["content"] = "";
  EXPECT_THAT(spoken(chat.render_with_mask(messages)), ElementsAre("<end>\n", "<think></think>C<end>\n"));
}

// As Phi-3.5 writes it: after the last turn stands a token more, which begins as others do.
TEST(AssistantMask, EndsWhereATurnEndsThatIsNotTheLast) {
  const ChatTemplate chat(
      "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}<|end|>\n{% endfor %}{% if add_generation_prompt "
      "%}<|assistant|>{% else %}<|endoftext|>{% endif %}",
      "phi");
  EXPECT_THAT(spoken(chat.render_with_mask(turns())), ElementsAre("Größe<|end|>\n", "C<|end|>\n<|endoftext|>"));
}

// Nothing would be learned of where such a turn ends.
TEST(AssistantMask, RefusesATurnThatEndsOtherwiseOnceOthersFollow) {
  const ChatTemplate chat(
      "{% for m in messages %}{{ m.content }}{% if loop.last and not add_generation_prompt %}</s>{% else %}\n{% endif %}{% "
      "endfor %}",
      "open");
  EXPECT_THAT(error_of([&] { chat.render_with_mask(turns()); }), HasSubstr("once other messages follow"));
}

TEST(AssistantMask, RefusesAPromptThatTheTurnDoesNotBeginWith) {
  const ChatTemplate chat(
      "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{% if add_generation_prompt %}assistant:<think>{% endif "
      "%}",
      "thinking");
  EXPECT_THAT(error_of([&] { chat.render_with_mask(turns()); }),
              HasSubstr("in message 1 cannot be told from the text around it: the template writes it differently than its "
                        "generation prompt begins it"));
}

TEST(AssistantMask, OfNestedGenerationBlocksIsTheirUnion) {
  const ChatTemplate chat("a{% generation %}b{% generation %}c{% endgeneration %}d{% endgeneration %}e", "nested");
  EXPECT_THAT(spoken(chat.render_with_mask(turns())), ElementsAre("bcd"));
}

TEST(AssistantMask, BelievesGenerationBlocksThatMarkNothing) {
  const ChatTemplate chat(
      "{% for m in messages %}{{ m.content }}{% endfor %}{% if false %}{% generation %}{% endgeneration %}{% endif %}", "silent");
  EXPECT_THAT(chat.render_with_mask(turns()).assistant, IsEmpty());
}

TEST(AssistantMask, AndAContinuedMessageExcludeEachOther) {
  const ChatTemplate chat(kChatMl, "chatml");
  EXPECT_THAT(error_of([&] { chat.render_with_mask(turns(), {.continue_final_message = "content"}); }),
              HasSubstr("exclude each other"));
}

}  // namespace
}  // namespace sluice::text::chat_template_mask_test
