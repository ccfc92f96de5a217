#include "nodes/scorers/http/judge.h"

#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/scorers/test_server.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::judge_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using Answer = TestServer::Answer;
using Request = TestServer::Request;

Answer said(const std::string& text) {
  return {200, Json{{"choices", {{{"index", 0}, {"message", {{"role", "assistant"}, {"content", text}}}}}}}.dump()};
}

std::string asked(const Request& request) { return Json::parse(request.body)["messages"].back()["content"].get<std::string>(); }

// Says that a response is right where the rubric "LABEL|RESPONSE" has the same on both sides.
Answer graded(const Request& request) {
  const std::string text = asked(request);
  const size_t bar = text.find('|');
  return said(text.substr(0, bar) == text.substr(bar + 1) ? "Yes. [[1]]" : "No. [[0]]");
}

JudgeParams params_for(std::vector<std::string> urls) {
  JudgeParams params;
  params.urls = std::move(urls);
  params.served_model = "judge-7b";
  params.rubric = "{label}|{response}";
  params.retry_seconds = 0.001;
  params.timeout_seconds = 60;
  return params;
}

std::vector<GroupOf> sums() {
  const auto pair = [](const std::string& prompt, const std::string& label) {
    return GroupOf{Sample().value(columns::kResponse, std::string("4")), Sample().value(columns::kResponse, std::string("5"))}
        .value(columns::kPrompt, prompt)
        .value(columns::kLabel, label);
  };
  return {pair("2+2=", "4"), pair("2+3=", "5")};
}

Output run(const JudgeParams& params, std::vector<GroupOf> groups = sums()) {
  NodeHarness<Judge> harness(params);
  harness.resources().node = "score";
  return harness.run(std::move(groups));
}
std::vector<float> scores(const JudgeParams& params) { return run(params)[columns::kScore]; }
std::string error(const JudgeParams& params) {
  return message_of<UserError>([&] { scores(params); });
}

TEST(Judge, AsksForEachSampleByTheRubricAndReadsTheVerdict) {
  const TestServer server(graded);
  EXPECT_THAT(scores(params_for({server.url("/v1/chat/completions")})), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(server.requests(), SizeIs(4));
  EXPECT_THAT(server.requests()[0].head, AllOf(HasSubstr("POST /v1/chat/completions "), Not(HasSubstr("Authorization"))));
}

TEST(Judge, RequestIsThatOfOpenAi) {
  const TestServer server(graded);
  JudgeParams params = params_for({server.url()});
  params.system = "You are strict.";
  params.request = R"({"top_p": 0.5, "max_tokens": 9})";
  run(params, {sums().front()});
  const auto requests = server.requests();
  const bool first_is_right = asked(requests[0]) == "4|4";  // they are under way at once
  EXPECT_EQ(Json::parse(requests[first_is_right ? 0 : 1].body),
            Json::parse(R"({"messages": [{"role": "system", "content": "You are strict."}, {"role": "user", "content": "4|4"}],
      "model": "judge-7b", "temperature": 0.0, "max_tokens": 9, "top_p": 0.5})"));
}

TEST(Judge, QuestionIsWhatTheUserSaidLastAndBracesOfTextsAreNoPlaces) {
  const TestServer server([](const Request&) { return said("[[1]]"); });
  JudgeParams params = params_for({server.url()});
  params.rubric = "{question} {{{prompt}}} {response}";
  const auto with_messages = [](const std::string& messages) {
    return GroupOf{Sample().value(columns::kResponse, std::string("{label}"))}
        .value(columns::kPrompt, std::string("<|user|>Why?"))
        .value(columns::kMessages, messages);
  };
  run(params, {with_messages(R"([{"role": "user", "content": "Hm?"}, {"role": "assistant", "content": "Ha."},
                                 {"role": "user", "content": "Why?"}])")});
  run(params, {with_messages("")});
  EXPECT_EQ(asked(server.requests()[0]), "Why? {<|user|>Why?} {label}");
  EXPECT_EQ(asked(server.requests()[1]), "<|user|>Why? {<|user|>Why?} {label}");
}

TEST(Judge, RequestsAreUnderWayAtOnceAndScoresInOrder) {
  std::atomic<int> arrived{0};
  const TestServer server([&](const Request& request) -> Answer {
    for (++arrived; arrived < 4;) std::this_thread::yield();  // answers none before all have come
    Answer answer = graded(request);
    answer.delay = std::chrono::milliseconds(request.number == 0 ? 30 : 0);
    return answer;
  });
  EXPECT_THAT(scores(params_for({server.url()})), ElementsAre(1, 0, 0, 1));
}

TEST(Judge, IsAskedAgainWhereThereIsNoVerdict) {
  const TestServer server([](const Request& request) { return request.number < 4 ? said("Well...") : graded(request); });
  JudgeParams params = params_for({server.url()});
  params.asks = 2;
  const auto out = run(params);
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(out.metrics().at("reward/score/asked_again"), 4);
  EXPECT_THAT(server.requests(), SizeIs(8));
}

TEST(Judge, SampleWithoutAVerdictFailsWithWhatWasSaid) {
  const TestServer server(
      [](const Request& request) { return asked(request) == "4|5" ? said("I cannot \x1b[31mtell") : said("[[6]]"); });
  JudgeParams params = params_for({server.url()});
  params.asks = 2;
  EXPECT_THAT(error(params),
              AllOf(HasSubstr(server.url()), HasSubstr("has no match of extract (asked 2 times)"), HasSubstr("\\u001B[31m")));
  params.on_error = OnError::kSkip;
  const auto out = run(params);
  EXPECT_THAT(out[columns::kScore], ElementsAre(6, 6, 6, 6));
  EXPECT_EQ(out.metrics().at("reward/score/failed_samples"), 1);
}

TEST(Judge, AReplyThatWasCutOffIsAskedForAgain) {
  const TestServer server([](const Request& request) -> Answer {
    if (request.number >= 2) return graded(request);
    Json answer = Json::parse(said("I must end with [[1]] or [[0]]. Now").body);
    answer["choices"][0]["finish_reason"] = "length";
    return {200, answer.dump()};
  });
  const auto out = run(params_for({server.url()}));
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 0, 0, 1));
  EXPECT_EQ(out.metrics().at("reward/score/asked_again"), 2);
}

TEST(Judge, WhatMayPassIsTriedAgainAndARefusalIsShown) {
  const TestServer busy([](const Request& request) -> Answer {
    return request.number < 2 ? Answer{429, "slowly"} : graded(request);
  });
  EXPECT_THAT(scores(params_for({busy.url()})), ElementsAre(1, 0, 0, 1));
  const TestServer refusing([](const Request&) -> Answer { return {404, "no such model"}; });
  JudgeParams params = params_for({refusing.url()});
  params.parallel = 1;
  EXPECT_THAT(error(params), HasSubstr("answered 404: no such model"));
  EXPECT_THAT(refusing.requests(), SizeIs(1)) << "who failed for good was asked on";
  params.on_error = OnError::kSkip;
  run(params);
  EXPECT_THAT(refusing.requests(), SizeIs(5)) << "a verdict was asked for again where none can come";
}

TEST(Judge, RetriesAreTold) {
  const TestServer busy([](const Request& request) -> Answer {
    return request.number < 2 ? Answer{429, "slowly"} : graded(request);
  });
  ::testing::internal::CaptureStderr();
  const auto out = run(params_for({busy.url()}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("answered 429: slowly; this was attempt 1, up to 5 more follow"));
  EXPECT_EQ(out.metrics().at("reward/score/retries"), 2);
}

TEST(Judge, AnswerThatIsNoCompletionShowsItsBeginning) {
  std::string body;
  const TestServer server([&](const Request&) -> Answer { return {200, body}; });
  for (const char* answer :
       {"[]", R"({"choices": []})", R"({"choices": [{"message": {"content": null}}]})", R"({"choices": [{"text": "[[1]]"}]})"}) {
    body = answer;
    EXPECT_THAT(error(params_for({server.url()})), HasSubstr("which is no chat completion")) << answer;
  }
  body = "<html>";
  EXPECT_THAT(error(params_for({server.url()})), HasSubstr("\"<html>\", which is not JSON"));
  body = "1e999";
  EXPECT_THAT(error(params_for({server.url()})), HasSubstr("which has a number that is out of range"));
}

TEST(Judge, TokenComesFromTheEnvironment) {
  const TestServer server(graded);
  JudgeParams params = params_for({server.url()});
  params.token_variable = "SLUICE_TEST_TOKEN";
  EXPECT_THAT(error(params), HasSubstr("no variable SLUICE_TEST_TOKEN"));
  ::setenv("SLUICE_TEST_TOKEN", "secret", 1);
  scores(params);
  ::unsetenv("SLUICE_TEST_TOKEN");
  EXPECT_THAT(server.requests()[0].head, HasSubstr("Authorization: Bearer secret"));
}

TEST(Judge, ReadsWhatItsRubricNames) {
  const auto reads = [](const std::string& rubric) {
    JudgeParams params = params_for({"http://judge/"});
    params.rubric = rubric;
    std::vector<std::string> names;
    for (const auto& column : NodeHarness<Judge>(params).needs().reads) names.push_back(column.name);
    return names;
  };
  EXPECT_THAT(reads("{response}"), ElementsAre("response"));
  EXPECT_THAT(reads("{question} {label} {response}"), ElementsAre("response", "prompt", "label"));
}

TEST(Judge, SettingsAreCheckedBeforeTheRun) {
  const auto problems = [](std::vector<std::pair<std::string, engine::Value>> keys) {
    const auto has = [&](const char* key) {
      return std::ranges::any_of(keys, [&](const auto& entry) { return entry.first == key; });
    };
    if (!has("rubric")) keys.push_back({"rubric", {std::string("{response}")}});
    keys.push_back({"urls", {engine::Array{{std::string("http://judge/")}}}});
    keys.push_back({"served_model", {std::string("judge")}});
    return NodeHarness<Judge>::problems(std::move(keys));
  };
  const auto text = [](const char* value) { return engine::Value{std::string(value)}; };
  const engine::Array choices{{std::string("Yes")}, {std::string("yes.")}}, scores{{1.0}};
  EXPECT_THAT(problems({}), IsEmpty());
  EXPECT_THAT(problems({{"rubric", text("Good?")}}), ElementsAre(HasSubstr("no place for {response}")));
  EXPECT_THAT(problems({{"rubric", text("{response} {answer}")}}), ElementsAre(HasSubstr("names {answer}")));
  EXPECT_THAT(problems({{"rubric", text("{response")}}), ElementsAre(HasSubstr("has a { without its }")));
  EXPECT_THAT(problems({{"request", text("[1]")}}), ElementsAre(HasSubstr("must be a JSON object")));
  EXPECT_THAT(problems({{"choices", {choices}}, {"choice_scores", {scores}}}),
              ElementsAre(HasSubstr("is there twice"), HasSubstr("2 choices and 1 choice score")));
  EXPECT_THAT(problems({{"choices", {engine::Array{{std::string("Yes")}}}}, {"choice_scores", {engine::Array{{1e40}}}}}),
              ElementsAre(HasSubstr("choice_scores has 1e+40, and a score is within -1e38 and 1e38")));
  EXPECT_THAT(problems({{"range", {engine::Array{{2.0}, {1.0}}}}}), ElementsAre(HasSubstr("range is not")));
  EXPECT_THAT(problems({{"field", text("a")}, {"extract", text("b")}}), ElementsAre(HasSubstr("no effect beside field")));
  EXPECT_THAT(problems({{"extract", text("(")}}), SizeIs(1));
}

}  // namespace
}  // namespace sluice::nodes::judge_test
