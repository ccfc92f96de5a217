#include "nodes/scorers/json/json_schema.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

bool is_json(std::string_view language) {
  constexpr std::string_view kJson = "json";
  return std::ranges::equal(language, kJson, [](char a, char b) { return a == b || a == b - 'a' + 'A'; });
}

// What stands between the last line ```json and the line of as many backticks that closes it.
std::optional<std::string_view> last_fenced(std::string_view text) {
  std::optional<std::string_view> last;
  size_t fence = 0, content = 0;  // of the block that is open; fence 0: none
  bool wanted = false;
  for (size_t begin = 0; begin < text.size();) {
    const size_t newline = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trim(text.substr(begin, newline - begin));
    const size_t ticks = std::min(line.find_first_not_of('`'), line.size());
    if (fence == 0 && ticks >= 3) {
      fence = ticks;
      content = std::min(newline + 1, text.size());
      wanted = is_json(trim(line.substr(ticks)));
    } else if (fence > 0 && ticks >= fence && ticks == line.size()) {
      if (wanted) last = text.substr(content, begin - content);
      fence = 0;
    }
    begin = newline + 1;
  }
  return last;
}

}  // namespace

void JsonSchema::describe(engine::Contract<JsonSchemaParams>& c) {
  using P = JsonSchemaParams;
  c.type("json_schema", "1 where the response is JSON that is valid under a schema, else 0");
  c.param("schema", &P::schema).required().must_exist().doc("file of the JSON schema (draft 7)");
  c.param("extract", &P::extract).doc("whole: all of the response, fenced: its last block between ```json and ```");
  describe_on_error(c);
  describe_scorer(c);
  c.check([](const P& params, engine::Findings& findings) {
    try {
      const JsonSchemaChecker checker(params.schema);
    } catch (const UserError& error) {
      findings.error("schema", error);
    }
  });
}

void JsonSchema::process(engine::MicroBatch& batch) {
  ScoredTexts texts(params_, batch);
  FailedSamples failed;
  score_each(texts, failed, [&](size_t i) {
    const std::string_view response = texts.text(i);
    const auto document = params_.extract == JsonPlace::kFenced ? last_fenced(response) : response;
    return document && checker_.accepts(*document) ? 1.0f : 0.0f;
  });
  failed.settle(params_, node_, batch, texts, metrics_);
  texts.record(metrics_);
}

}  // namespace sluice::nodes
