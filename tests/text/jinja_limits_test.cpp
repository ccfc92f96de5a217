// A template is a program from a stranger: what it may not do, and what is said then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/text/chat_template_fixtures.h"
#include "text/jinja/template.h"

namespace sluice::text::jinja::jinja_limits_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_with(const std::string& source, const Json& variables = Json::object(), const Limits& limits = {}) {
  return error_of([&] { Template(source, "hostile").render(variables, golden_time(), limits); });
}

// So that another limit than that of the steps is reached.
const Limits kPatient{.steps = 100'000'000};

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(JinjaLimits, EndlessWorkIsStopped) {
  const std::string loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(error_with(loops), AllOf(HasSubstr("hostile:1"), HasSubstr("steps, the most that it may")));
  EXPECT_THAT(error_with("{% set x = 'a' * 1000000 %}{% for i in range(99999) %}{% if 'b' in x %}{% endif %}{% endfor %}"),
              HasSubstr("steps"));
  EXPECT_THAT(error_with("{% set x = range(99999)|list %}{% for i in range(99999) %}{{ -1 in x }}{% endfor %}"),
              HasSubstr("steps"));
  EXPECT_THAT(error_with("{% set x = 'ab' * 100000 %}{% for i in range(99999) %}{% set y = x.replace('a', 'c') %}{% endfor %}"),
              HasSubstr("steps"));
}

TEST(JinjaLimits, SharedDataAreNotWalkedOverAndOver) {
  const std::string shared = "{% set ns = namespace(x=(1,)) %}{% for i in range(60) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}";
  for (const char* use : {"{{ ns.x }}", "{{ ns.x|tojson }}", "{{ {ns.x: 1} }}"})
    EXPECT_NE(error_with(shared + use), "accepted") << use;
}

TEST(JinjaLimits, MemoryIsBounded) {
  EXPECT_THAT(error_with("{{ 'a' * 9999999999 }}"), HasSubstr("of memory"));
  EXPECT_THAT(error_with("{{ [0] * 99999999 }}"), HasSubstr("of memory"));
  EXPECT_THAT(error_with("{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
                         Json::object(), kPatient),
              HasSubstr("of memory"));
  EXPECT_THAT(error_with("{% set ns = namespace(x=[0]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
                         Json::object(), kPatient),
              HasSubstr("of memory"));
  EXPECT_THAT(error_with("{{ 'a'.center(9999999999) }}"), HasSubstr("of memory"));
  EXPECT_THAT(error_with("{{ [1]|tojson(indent=9999999999) }}"), HasSubstr("of memory"));
  EXPECT_THAT(error_with("{{ 'a'|indent(9999999999) }}"), HasSubstr("of memory"));
  EXPECT_THAT(error_with("{{ ('a' * 1000000).replace('', 'b' * 1000) }}"), HasSubstr("of memory"));
  EXPECT_THAT(error_with("{{ [1]|batch(9999999999, 0)|list }}"), HasSubstr("of memory"));
  EXPECT_THAT(error_with("{{ '%999999999d' % 1 }}"), HasSubstr("more than 10000 characters"));
  EXPECT_THAT(error_with("{{ '{:999999999}'.format(1) }}"), HasSubstr("more than 10000 characters"));
}

TEST(JinjaLimits, OutputIsBounded) {
  EXPECT_THAT(error_with("{% set x = 'a' * 1000000 %}{% for i in range(100) %}{{ x }}{% endfor %}", Json::object(), kPatient),
              HasSubstr("the template writes more than"));
}

TEST(JinjaLimits, RecursionIsBounded) {
  EXPECT_THAT(error_with("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("nest deeper than 1000 levels"));
  EXPECT_THAT(error_with("{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}"),
              HasSubstr("nest deeper than 1000 levels"));
  const std::string nest = "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  for (const char* use : {"{{ ns.x }}", "{{ ns.x|tojson }}", "{{ ns.x == [ns.x] }}", "{{ ns.x < [ns.x] }}"})
    EXPECT_THAT(error_with(nest + use), HasSubstr("nest deeper than")) << use;
  EXPECT_THAT(error_with("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}"), HasSubstr("nest deeper than"));
}

TEST(JinjaLimits, DeepValuesAreDestroyedWithoutRecursion) {
  const std::string source = "{% set ns = namespace(x=[]) %}{% for i in range(50000) %}{% set ns.x = [ns.x] %}{% endfor %}done";
  EXPECT_EQ(Template(source, "deep").render(Json::object()).text, "done");
  const std::string lazy =
      "{% set ns = namespace(x=[1]) %}{% for i in range(5000) %}{% set ns.x = ns.x|map('string') %}{% endfor %}done{% for x in "
      "ns.x %}{{ x }}{% endfor %}";
  EXPECT_THAT(error_with(lazy), HasSubstr("nest deeper than"));
}

TEST(JinjaLimits, CyclesOfValuesAreFreed) {
  const std::string source =
      "{% macro m() %}{% endmacro %}{% set ns = namespace(m=m) %}{% set ns.self = ns %}{% for x in [ns] %}{% set ns.loop = loop "
      "%}{% if loop.changed(loop) %}{% endif %}{% endfor %}done";
  EXPECT_EQ(Template(source, "cycle").render(Json::object()).text, "done");
}

TEST(JinjaLimits, NestingOfTheTemplateIsBounded) {
  EXPECT_THAT(error_with("{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}"), HasSubstr("nests deeper than"));
  EXPECT_THAT(error_with("{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}"), HasSubstr("nests deeper than"));
  EXPECT_THAT(error_with("{{ " + repeated("-", 5000) + "1 }}"), HasSubstr("nests deeper than"));
  EXPECT_THAT(error_with("{{ " + repeated("not ", 5000) + "1 }}"), HasSubstr("nests deeper than"));
  EXPECT_THAT(error_with("{{ 1" + repeated(" if 1 else 1", 5000) + " }}"), HasSubstr("nests deeper than"));
  EXPECT_THAT(error_with("{{ 1" + repeated(" + 1", 5000) + " }}"), HasSubstr("operators in a row"));
  EXPECT_THAT(error_with("{{ a" + repeated(".a", 5000) + " }}"), HasSubstr("operators in a row"));
  EXPECT_THAT(error_with("{{ a" + repeated("|d", 5000) + " }}"), HasSubstr("operators in a row"));
  EXPECT_THAT(error_with("{{ a" + repeated("()", 5000) + " }}"), HasSubstr("operators in a row"));
  EXPECT_THAT(error_with(repeated("{% if 1 %}", 5000)), HasSubstr("tags nest deeper than"));
  EXPECT_THAT(error_with("{% set " + repeated("(", 5000) + repeated(")", 5000) + " %}"), HasSubstr("nests deeper than"));
}

TEST(JinjaLimits, LongFlatTemplatesAreFine) {
  EXPECT_EQ(Template("{{ " + repeated("'a' ~ ", 5000) + "'a' }}", "flat").render(Json::object()).text, repeated("a", 5001));
  EXPECT_EQ(
      Template("{% if 0 %}" + repeated("{% elif 0 %}", 5000) + "{% else %}x{% endif %}", "flat").render(Json::object()).text,
      "x");
}

TEST(JinjaLimits, DataMayNestAsDeepAsJsonMay) {
  const Json deep = parse_json(repeated("[", 500) + repeated("]", 500), "deep");
  EXPECT_EQ(Template("{{ x|tojson|length }}", "deep").render({{"x", deep}}).text, "1000");
}

TEST(JinjaLimits, GrowWithTheConversation) {
  Json messages = Json::array();
  for (int i = 0; i < 5000; ++i)
    messages.push_back({{"role", i % 2 ? "assistant" : "user"}, {"content", repeated("word ", 100)}});
  const Template source(
      "{% for m in messages %}{% if m['role'] == 'user' and not m.tool_calls %}<{{ m.role }}>{{ m.content|trim }}{% else %}{{ "
      "loop.index }}{{ m.content }}{% endif %}{% endfor %}",
      "long");
  EXPECT_GT(source.render({{"messages", messages}}).text.size(), 2'000'000);
}

TEST(JinjaLimits, TextThatIsNotUtf8IsRefused) {
  EXPECT_THAT(error_with("a\xff"), HasSubstr("hostile: the template is not UTF-8"));
  EXPECT_THAT(error_with("{{ x }}", {{"x", "\xff"}}), HasSubstr("not UTF-8"));
}

TEST(JinjaLimits, NumbersBeyond64BitsAreRefusedAndNotRounded) {
  EXPECT_THAT(error_with("{{ 9223372036854775807 + 1 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(error_with("{{ 99999999999999999999 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(error_with("{{ x }}", {{"x", 18446744073709551615ULL}}), HasSubstr("64 bits"));
  EXPECT_THAT(error_with("{{ (-9223372036854775807 - 1) // -1 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(error_with("{{ 2 ** 63 }}"), HasSubstr("64 bits"));
}

TEST(JinjaErrors, NameTheLine) {
  EXPECT_THAT(error_with("a\nb {{ missing.x }}\nc"), AllOf(HasSubstr("hostile:2"), HasSubstr("'missing' is undefined")));
  EXPECT_THAT(error_with("{% for m in x %}\n{{ m.a.b }}\n{% endfor %}", {{"x", {1}}}),
              AllOf(HasSubstr("hostile:2"), HasSubstr("an int has no attribute 'a'")));
  EXPECT_THAT(error_with("x\n\n{{ raise_exception('roles must alternate') }}"),
              AllOf(HasSubstr("hostile:3"), HasSubstr("the template refuses its input: roles must alternate")));
  EXPECT_THAT(error_with("x\n{{ 'a'|uper }}"),
              AllOf(HasSubstr("hostile:2"), HasSubstr("there is no filter \"uper\"; did you mean 'upper'?")));
}

TEST(JinjaErrors, SayWhatIsNotSupported) {
  EXPECT_THAT(error_with("{% include 'other' %}"), HasSubstr("the tag 'include' is not supported in a chat template"));
  EXPECT_THAT(error_with("{{ 'a'|urlize }}"), HasSubstr("the filter 'urlize' is not supported"));
  EXPECT_THAT(error_with("{{ 'a'.encode() }}"), HasSubstr("not supported here"));
}

TEST(JinjaErrors, ShowLongLinesWithoutTheirText) {
  EXPECT_THAT(error_with(repeated("x", 1000) + "{{ missing.x }}"), testing::Not(HasSubstr("xxxxx")));
}

TEST(JinjaTemplate, RendersInManyThreadsAtOnce) {
  const Template source("{% for x in xs %}{{ x|tojson }}{{ 'constant' }}{% endfor %}", "shared");
  const Json variables = {{"xs", {1, "two", {{"three", 3}}}}};
  const std::string expected = source.render(variables).text;
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) threads.emplace_back([&] { text = source.render(variables).text; });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, expected);
}

}  // namespace
}  // namespace sluice::text::jinja::jinja_limits_test
