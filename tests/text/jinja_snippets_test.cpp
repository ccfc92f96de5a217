// The language, one small template at a time, against the texts of jinja2 (tests/oracles/chat_template_reference.py).
#include <gtest/gtest.h>

#include "tests/text/chat_template_fixtures.h"
#include "text/jinja/template.h"

namespace sluice::text::jinja::jinja_snippets_test {
namespace {

Json render(const std::string& source, const Json& variables) {
  try {
    const Rendered rendered = Template(source, "snippet").render(variables, golden_time());
    return {{"text", rendered.text}, {"generations", rendered.generations}};
  } catch (const UserError&) {
    return {{"error", true}};
  }
}

TEST(JinjaSnippets, GiveTheTextOfTheReferenceOrFailWhereItFails) {
  const Json variables = read_json(golden_chat_folder() / "inputs.json").at("variables");
  const std::vector<Json> cases = golden_lines("snippets.jsonl");
  ASSERT_GT(cases.size(), 500);
  for (Json expected : cases) {
    const std::string source = expected.at("template").get<std::string>();
    expected.erase("template");
    EXPECT_EQ(render(source, variables).dump(), expected.dump()) << source;
  }
}

}  // namespace
}  // namespace sluice::text::jinja::jinja_snippets_test
