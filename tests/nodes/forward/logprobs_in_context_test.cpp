#include "nodes/forward/logprobs_in_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::logprobs_in_context_test {
namespace {

using ::testing::ElementsAre;
using testing::floats;
using testing::group_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::run_node;
using testing::tiny_model;
using testing::TinyFolder;
using testing::TinySample;

// One id a character: 'a' is 66, '0' is 17. Prompts "a" and "0", label "b" and "1".
engine::Group group(const std::vector<TinySample>& samples, const std::string& prompt, const std::string& label,
                    const std::string& messages = "") {
  engine::Group group = group_of(samples);
  group.write(columns::kPrompt)[0] = prompt;
  group.write(columns::kLabel)[0] = label;
  group.write(columns::kMessages)[0] = messages;
  return group;
}

LogprobsInContextParams params(const std::string& context) {
  return {.model = "m", .context = context, .max_tokens = 64, .temperature = 0.7};
}

// What `logprobs` says of samples that are written out with the longer prompt.
TEST(LogprobsInContext, AreThoseOfTheSameResponseBehindTheOtherPrompt) {
  const TinyFolder folder;
  const testing::Models models{{"m", tiny_model(folder.path(), {})}};
  const std::vector<engine::Group> asked{group({{{66, 33, 40, 41}, 3}, {{66, 50}, 1}}, "a", "b"),
                                         group({{{17, 20, 21}, 2}}, "0", "1")};
  // "b:a|" and "1:0|", of which ':' is 27 and '|' is 93
  const std::vector<engine::Group> written{group_of({{{67, 27, 66, 93, 33, 40, 41}, 3}, {{67, 27, 66, 93, 50}, 1}}),
                                           group_of({{{18, 27, 17, 93, 20, 21}, 2}})};
  const auto expected =
      floats(run_node<Logprobs>(LogprobsParams{.model = "m", .temperature = 0.7}, models, written), "reference_logprobs");
  const auto node = [&](std::vector<size_t> packing, int64_t pass_tokens) {
    return floats(run_node<LogprobsInContext>(params("{label}:{question}|"), models, asked, std::move(packing), pass_tokens),
                  "teacher_logprobs");
  };
  EXPECT_EQ(node({}, 64), expected);
  EXPECT_EQ(node({1, 1}, 64), expected);
  EXPECT_EQ(node({}, 7), expected);
}

TEST(LogprobsInContext, ContextTakesThePlaceOfWhatTheUserSaidLast) {
  const TinyFolder folder;
  write_file_atomically(
      folder.path() / "chat_template.jinja",
      "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{% endfor %}{% if add_generation_prompt %}a{% endif %}");
  const testing::Models models{{"m", tiny_model(folder.path(), {})}};
  const std::string messages =
      R"([{"role": "user", "content": "1"}, {"role": "assistant", "content": "2"}, {"role": "user", "content": "3"}])";
  const auto out =
      run_node<LogprobsInContext>(params("{question}{label}"), models, {group({{{9, 9, 33}, 1}}, "u1a2u3a", "7", messages)});
  // "u1a2u37a": 'u' is 86, '1' is 18
  const auto expected = run_node<Logprobs>(LogprobsParams{.model = "m", .temperature = 0.7}, models,
                                           {group_of({{{86, 18, 66, 19, 86, 20, 24, 66, 33}, 1}})});
  EXPECT_EQ(floats(out, "teacher_logprobs"), floats(expected, "reference_logprobs"));
}

TEST(LogprobsInContext, RefusesAContextThatCannotBeFilled) {
  const auto problems = [](const char* context) {
    return NodeHarness<LogprobsInContext>::problems(
        {{"model", {std::string("m")}}, {"max_tokens", {int64_t{9}}}, {"context", {std::string(context)}}});
  };
  EXPECT_THAT(problems("{question} {label} {{}}"), IsEmpty());
  EXPECT_THAT(problems("{question} {answer}"), ElementsAre(HasSubstr("names {answer}")));
  EXPECT_THAT(problems("{question"), ElementsAre(HasSubstr("context has a { without its }")));
}

TEST(LogprobsInContext, SampleThatIsTooLongIsNamed) {
  const TinyFolder folder;
  const testing::Models models{{"m", tiny_model(folder.path(), {})}};
  LogprobsInContextParams small = params("{label}{question}");
  small.max_tokens = 4;
  EXPECT_THAT(
      message_of<UserError>([&] {
        run_node<LogprobsInContext>(small, models, {group({{{66, 33}, 1}}, "a", "b"), group({{{66, 33}, 1}}, "a", "bbb")});
      }),
      HasSubstr("a sample of group 1 has 5 tokens, max_tokens is 4"));
}

}  // namespace
}  // namespace sluice::nodes::logprobs_in_context_test
