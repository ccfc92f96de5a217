#include "nodes/scorers/http/http_scorer.h"

#include <atomic>
#include <cstdlib>
#include <future>
#include <thread>

#include "base/error.h"
#include "base/json/json.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/scorers/test_server.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::http_scorer_test {
namespace {

using namespace std::string_view_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using Answer = TestServer::Answer;
using Request = TestServer::Request;

GroupOf pair_of(const std::string& prompt, const std::string& label, const std::string& first, const std::string& second) {
  return GroupOf{Sample().value(columns::kResponse, first), Sample().value(columns::kResponse, second)}
      .value(columns::kPrompt, prompt)
      .value(columns::kLabel, label);
}

std::vector<GroupOf> sums() { return {pair_of("2+2=", "4", "4", "5"), pair_of("2+3=", "5", "4", "5")}; }

HttpScorerParams params_for(std::vector<std::string> urls, HttpFormat format = HttpFormat::kOpenRlhf) {
  HttpScorerParams params;
  params.urls = std::move(urls);
  params.format = format;
  params.retry_seconds = 0.001;
  params.timeout_seconds = 60;
  return params;
}

Output run(const HttpScorerParams& params) {
  NodeHarness<HttpScorer> harness(params);
  harness.resources().node = "score";
  return harness.run(sums());
}
std::vector<float> scores(const HttpScorerParams& params) { return run(params)[columns::kScore]; }
std::string error(const HttpScorerParams& params) {
  return message_of<UserError>([&] { scores(params); });
}

// A server in OpenRLHF's format that compares query with prompt and label.
Answer graded(const Request& request) {
  const Json asked = Json::parse(request.body);
  Json rewards = Json::array();
  for (size_t i = 0; i < asked["query"].size(); ++i) {
    rewards.push_back(asked["query"][i] == asked["prompts"][i].get<std::string>() + asked["labels"][i].get<std::string>() ? 1
                                                                                                                          : 0);
  }
  return {200, Json{{"rewards", rewards}}.dump()};
}

TEST(HttpScorer, OpenRlhfServerGetsTheWholeMicroBatch) {
  const TestServer server(graded);
  EXPECT_THAT(scores(params_for({server.url("/get_reward")})), ElementsAre(1, 0, 0, 1));
  ASSERT_THAT(server.requests(), SizeIs(1));
  EXPECT_EQ(Json::parse(server.requests()[0].body), Json::parse(R"({"query": ["2+2=4", "2+2=5", "2+3=4", "2+3=5"],
      "prompts": ["2+2=", "2+2=", "2+3=", "2+3="], "labels": ["4", "4", "5", "5"]})"));
  EXPECT_THAT(server.requests()[0].head, AllOf(HasSubstr("POST /get_reward "), HasSubstr("Content-Type: application/json")));
}

TEST(HttpScorer, SlimeServerIsAskedForEachSample) {
  const auto answer = [](const Request& request) -> Answer {
    const Json asked = Json::parse(request.body);
    const bool right = asked["response"] == asked["label"];
    if (asked["prompt"] == "2+2=") return {200, right ? "2.5" : "0"};
    return {200, right ? R"({"score": 1.5})" : R"({"reward": -1})"};
  };
  const TestServer server(answer);
  EXPECT_THAT(scores(params_for({server.url()}, HttpFormat::kSlime)), ElementsAre(2.5, 0, -1, 1.5));
}

TEST(HttpScorer, BatchesGoToTheUrlsInTurn) {
  const TestServer one(graded), two(graded);
  EXPECT_THAT(scores(params_for({one.url(), two.url()})), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(one.requests(), SizeIs(1));
  EXPECT_THAT(two.requests(), SizeIs(1));

  HttpScorerParams params = params_for({one.url(), two.url()});
  params.batch_size = 1;
  EXPECT_THAT(scores(params), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(one.requests(), SizeIs(3));
  EXPECT_THAT(two.requests(), SizeIs(3));
}

TEST(HttpScorer, RequestsAreUnderWayAtOnceAndScoresInOrder) {
  std::atomic<int> arrived{0};
  const TestServer server([&](const Request& request) -> Answer {
    for (++arrived; arrived < 4;) std::this_thread::yield();  // answers none before all have come
    const auto wait = std::chrono::milliseconds(request.number == 0 ? 30 : 0);
    return {200, Json::parse(request.body)["response"].get<std::string>(), wait};
  });
  EXPECT_THAT(scores(params_for({server.url()}, HttpFormat::kSlime)), ElementsAre(4, 5, 4, 5));
}

TEST(HttpScorer, WhatMayPassIsTriedAgain) {
  const TestServer server([](const Request& request) -> Answer {
    constexpr int kStates[] = {503, 429, 408, 500};
    return request.number < 4 ? Answer{kStates[request.number], "busy"} : graded(request);
  });
  EXPECT_THAT(scores(params_for({server.url()})), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(server.requests(), SizeIs(5));
}

TEST(HttpScorer, ServerThatIsDownIsPassedOver) {
  std::string down;
  { down = TestServer(graded).url(); }
  const TestServer up(graded);
  EXPECT_THAT(scores(params_for({down, up.url()})), ElementsAre(1, 0, 0, 1));
}

TEST(HttpScorer, ServerThatStaysDownIsNamed) {
  std::string down;
  { down = TestServer(graded).url(); }
  HttpScorerParams params = params_for({down});
  params.retries = 2;
  EXPECT_THAT(error(params), AllOf(HasSubstr(down), HasSubstr("(after 3 attempts)")));
}

TEST(HttpScorer, AServerThatAsksForAPauseGetsIt) {
  const TestServer server([](const Request& request) -> Answer {
    return request.number == 0 ? Answer{429, "slowly", {}, "Retry-After: 1\r\n"} : graded(request);
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(scores(params_for({server.url()})), ElementsAre(1, 0, 0, 1));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

// What would be copied again and again, one level in the other.
TEST(HttpScorer, AnAnswerThatNestsWithoutEndIsNoAnswer) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const TestServer server([&](const Request&) -> Answer { return {200, "{\"a\": " + deep + ", \"rewards\": [1, 1, 1, 1]}"}; });
  EXPECT_THAT(error(params_for({server.url()})), HasSubstr(server.url()));
}

TEST(HttpScorer, RefusalIsNotTriedAgainAndShown) {
  const TestServer server([](const Request&) -> Answer { return {404, "no such\nmodel"}; });
  EXPECT_THAT(error(params_for({server.url()})), HasSubstr(server.url() + " answered 404: no such model"));
  EXPECT_THAT(server.requests(), SizeIs(1));
}

TEST(HttpScorer, APasswordAndAQueryAreSentAndNotTold) {
  const TestServer server([](const Request&) -> Answer { return {404, "no"}; });
  const std::string host = server.url().substr(std::string("http://").size());
  for (const std::string user : {"user", ""}) {
    const std::string told = error(params_for({"http://" + user + ":secret@" + host + "?api_key=hidden"}));
    EXPECT_THAT(told, HasSubstr("http://***@" + host + "?... answered 404"));
    EXPECT_THAT(told, Not(::testing::ContainsRegex("secret|hidden")));
  }
  EXPECT_THAT(server.requests()[0].head, AllOf(HasSubstr("?api_key=hidden"), HasSubstr("Authorization: Basic ")));
}

TEST(HttpScorer, ARedirectionIsAnErrorThatSaysWhereItLeads) {
  const TestServer server([](const Request&) -> Answer { return {308, "", {}, "Location: /ok?key=hidden\r\n"}; });
  EXPECT_THAT(error(params_for({server.url()})),
              HasSubstr("answered 308: redirections are not followed, and this one leads to " + server.url("/ok") + "?..."));
  const TestServer nowhere([](const Request&) -> Answer { return {302, ""}; });
  EXPECT_THAT(error(params_for({nowhere.url()})), HasSubstr("answered 302: an empty body"));
}

TEST(HttpScorer, WhoIsRefusedIsToldOfTheToken) {
  const TestServer server([](const Request& request) -> Answer { return {request.number == 0 ? 401 : 403, "who?"}; });
  HttpScorerParams params = params_for({server.url()});
  EXPECT_THAT(error(params), HasSubstr("answered 401: who?; no token was sent: token_variable names"));
  params.token_variable = "SLUICE_TEST_TOKEN";
  ::setenv("SLUICE_TEST_TOKEN", "secret", 1);
  EXPECT_THAT(error(params), HasSubstr("answered 403: who?; the token that was sent is that of token_variable"));
  ::unsetenv("SLUICE_TEST_TOKEN");
}

TEST(HttpScorer, WhatABodySaysSteersNoTerminal) {
  const TestServer server([](const Request&) -> Answer { return {404, "no \x1b[31m\xc2\x9b"}; });
  EXPECT_THAT(error(params_for({server.url()})), HasSubstr("answered 404: no  [31m\\u009b"));
}

TEST(HttpScorer, AnAnswerMayBeCompressed) {
  // {"rewards":[1,0,0,1]}
  const std::string_view body =
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x2a\x4a\x2d\x4f\x2c\x4a\x29\x56\xb2\x8a\x36\xd4\x31\x00\x42\xc3\xd8\x5a\x00\xaf\x28\xae\x78\x15\x00\x00\x00"sv;
  const TestServer server([&](const Request&) -> Answer { return {200, std::string(body), {}, "Content-Encoding: gzip\r\n"}; });
  EXPECT_THAT(scores(params_for({server.url()})), ElementsAre(1, 0, 0, 1));
}

TEST(HttpScorer, TheFirstFailureForGoodEndsTheRest) {
  constexpr std::chrono::seconds kLong{30};
  std::promise<void> over;
  const TestServer server([&, is_over = over.get_future().share()](const Request& request) -> Answer {
    if (request.number == 0) return {400, "no"};
    is_over.wait_for(kLong);
    return {200, "1"};
  });
  HttpScorerParams params = params_for({server.url()}, HttpFormat::kSlime);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(error(params), HasSubstr("answered 400: no"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong) << "requests under way were waited for";
  over.set_value();
}

TEST(HttpScorer, AfterAFailureForGoodNothingIsAsked) {
  const TestServer server([](const Request&) -> Answer { return {200, "no score"}; });
  HttpScorerParams params = params_for({server.url()}, HttpFormat::kSlime);
  params.parallel = 1;
  EXPECT_THAT(error(params), HasSubstr("which is not JSON"));
  EXPECT_THAT(server.requests(), SizeIs(1));
  params.on_error = OnError::kSkip;
  run(params);
  EXPECT_THAT(server.requests(), SizeIs(5));
}

TEST(HttpScorer, TheFirstRetryIsToldAndAllAreCounted) {
  const TestServer server([](const Request& request) -> Answer {
    return request.number < 3 ? Answer{503, "no workers"} : graded(request);
  });
  HttpScorerParams params = params_for({server.url() + "?key=hidden"});
  params.retry_seconds = 0.1;
  ::testing::internal::CaptureStderr();
  const auto out = run(params);
  const std::string warnings = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(warnings, HasSubstr("node 'score', iteration 0: " + server.url() +
                                  "?... answered 503: no workers; this was attempt 1, "
                                  "up to 5 more follow, the next in 0.1 s\n"));
  EXPECT_THAT(warnings, Not(HasSubstr("attempt 2")));
  EXPECT_EQ(out.metrics().at("reward/score/retries"), 3);
  EXPECT_EQ(run(params).metrics().count("reward/score/retries"), 0);
}

TEST(HttpScorer, SilenceIsNotWaitedForWithoutEnd) {
  const TestServer server([](const Request&) -> Answer { return {200, "1", std::chrono::milliseconds(500)}; });
  HttpScorerParams params = params_for({server.url()});
  params.timeout_seconds = 0.1;
  params.retries = 0;
  EXPECT_THAT(error(params), AllOf(HasSubstr(server.url()), HasSubstr("timed out")));
}

// Neither an answer nor the next attempt is waited for when the run drops the iteration.
TEST(HttpScorer, WhatIsNotNeededAnyMoreIsNotWaitedFor) {
  const TestServer server([](const Request&) -> Answer { return {200, "1", std::chrono::milliseconds(2000)}; });
  HttpClient client({.urls = {server.url(), "http://127.0.0.1:9/"}, .first_pause = std::chrono::hours(1)});
  engine::OutsideWork work;
  std::jthread drops([&work] {
    while (work.looks() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    work.drop_behind(-1);
  });
  const std::vector<std::string> bodies{"{}", "{}"};
  const auto take = [](size_t, const HttpReply&) { return true; };
  EXPECT_THROW(client.post(bodies, take, [](const HttpRetry&) {}, {&work, 0}), engine::WorkDropped);
}

TEST(HttpScorer, AnswerThatIsNoScoreShowsItsBeginning) {
  std::string body;
  const TestServer server([&](const Request&) -> Answer { return {200, body}; });
  const auto complaint = [&](std::string answered, HttpFormat format = HttpFormat::kOpenRlhf) {
    body = std::move(answered);
    return error(params_for({server.url()}, format));
  };
  EXPECT_THAT(complaint("<html>welcome</html>"), HasSubstr("answered \"<html>welcome</html>\", which is not JSON"));
  EXPECT_THAT(complaint(R"({"reward": 1})"), HasSubstr("which has no list rewards"));
  EXPECT_THAT(complaint(R"({"rewards": [1, 2]})"), HasSubstr("2 rewards for 4 samples"));
  EXPECT_THAT(complaint(R"({"rewards": [1, null, 2, 3]})"), HasSubstr("reward 1 is not a finite number"));
  EXPECT_THAT(complaint(R"({"rewards": [1, 1, 1, 1e39]})"), HasSubstr("reward 3 is not a finite number"));
  EXPECT_THAT(complaint(R"({"rewards": [1, NaN, 2, 3]})"), HasSubstr("not JSON"));
  EXPECT_THAT(complaint(R"({"rewards": [1, 1, 1, 1e999]})"), HasSubstr("which has a number that is out of range"));
  EXPECT_THAT(complaint(R"({"rewards": [0, 0, 0, 0], "rewards": [1, 1, 1, 1]})"),
              HasSubstr("which has the key \"rewards\" twice"));
  EXPECT_THAT(complaint(R"({"score": "high"})", HttpFormat::kSlime), HasSubstr("neither a finite number"));
  EXPECT_THAT(complaint("[1]", HttpFormat::kSlime), HasSubstr("neither a finite number"));
}

TEST(HttpScorer, FailedRequestCanBeSkipped) {
  const TestServer server([](const Request& request) -> Answer {
    const Json asked = Json::parse(request.body);
    return asked["prompt"] == "2+2=" && asked["response"] == "5" ? Answer{400, "no"} : Answer{200, "7"};
  });
  HttpScorerParams params = params_for({server.url()}, HttpFormat::kSlime);
  params.on_error = OnError::kSkip;
  const auto out = run(params);
  EXPECT_THAT(out[columns::kScore], ElementsAre(7, 7, 7, 7));
  EXPECT_EQ(out.metrics().at("reward/score/failed_samples"), 1);
}

TEST(HttpScorer, ExtraLogsAreRecorded) {
  const TestServer server([](const Request&) -> Answer {
    return {200, R"({"rewards": [1, 2, 3, [4]], "scores": [0, 0, 0, 0], "extra_logs": {"length": [1, 2, 3, 6], "version": 3}})"};
  });
  const auto out = run(params_for({server.url()}));
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(out.metrics().at("reward/score/length"), 3);
  EXPECT_EQ(out.metrics().at("reward/score/version"), 3);
}

TEST(HttpScorer, NameOfAMetricThatCannotBeOneIsTheServersFailure) {
  const TestServer server([](const Request&) -> Answer {
    return {200, R"({"rewards": [1, 2, 3, 4], "extra_logs": {"a b": 1}})"};
  });
  EXPECT_THAT(error(params_for({server.url()})), AllOf(HasSubstr(server.url()), HasSubstr("a metric named \"a b\"")));
  const TestServer counting([](const Request&) -> Answer {
    return {200, R"({"rewards": [1, 2, 3, 4], "extra_logs": {"retries": 1}})"};
  });
  EXPECT_THAT(error(params_for({counting.url()})), HasSubstr("a metric named retries"));
}

TEST(HttpScorer, TokenComesFromTheEnvironment) {
  const TestServer server(graded);
  HttpScorerParams params = params_for({server.url()});
  params.token_variable = "SLUICE_TEST_TOKEN";
  EXPECT_THAT(error(params), HasSubstr("no variable SLUICE_TEST_TOKEN"));
  ::setenv("SLUICE_TEST_TOKEN", "secret", 1);
  scores(params);
  ::unsetenv("SLUICE_TEST_TOKEN");
  EXPECT_THAT(server.requests()[0].head, HasSubstr("Authorization: Bearer secret"));
}

TEST(HttpScorer, ThisMachineIsAskedWithoutTheProxyThatOthersAreAskedThrough) {
  const TestServer proxy([](const Request&) -> Answer { return {418, "a proxy"}; });
  const TestServer server(graded);
  ::setenv("http_proxy", ("http://127.0.0.1:" + std::to_string(proxy.port())).c_str(), 1);
  EXPECT_THAT(scores(params_for({server.url()})), ElementsAre(1, 0, 0, 1));
  EXPECT_THAT(error(params_for({"http://reward.invalid/score"})), HasSubstr("answered 418: a proxy"));
  ::unsetenv("http_proxy");
}

TEST(HttpScorer, SettingsAreCheckedBeforeTheRun) {
  using Harness = NodeHarness<HttpScorer>;
  const auto urls = [](const char* url) {
    engine::Array list(1);
    list[0].data = std::string(url);
    engine::Value value;
    value.data = std::move(list);
    return value;
  };
  EXPECT_THAT(Harness::problems({{"urls", urls("ftp://host/x")}}), ElementsAre(HasSubstr("does not begin with http")));
  EXPECT_THAT(Harness::problems({{"urls", urls("http://u:secret@ho st/?key=hidden")}}),
              ElementsAre(HasSubstr("\"http://***@ho st/?...\" is not a url")));
  EXPECT_THAT(Harness::problems({{"urls", urls("http://")}}), ElementsAre(HasSubstr("is not a url")));
  EXPECT_THAT(Harness::problems({{"urls", urls("http:///score")}}), ElementsAre(HasSubstr("is not a url")));
  EXPECT_THAT(Harness::problems({{"urls", urls("http://one/score?of=file:///x")}}), SizeIs(0));
  EXPECT_THAT(Harness::problems({{"urls", urls("http://h/x")}, {"format", {std::string("slime")}}, {"batch_size", {int64_t{4}}}}),
              ElementsAre(HasSubstr("batch_size has no effect")));
  EXPECT_THAT(Harness::problems({}), SizeIs(1));
}

}  // namespace
}  // namespace sluice::nodes::http_scorer_test
