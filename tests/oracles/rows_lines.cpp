// Reads rows as standard input says, for the comparison with files that other libraries wrote (tests/oracles/columnar_rows.py).
//
// One JSON object a line:
//
//   {"paths": ["a.parquet"], "fields": [{"name": "messages", "kind": "messages", "required": true}], "shuffle": true, "seed": 1,
//    "begin": 3, "count": 10}
//
// kind: text, messages or either. One answer a line: {"rows": 1000, "next": 13, "fingerprint": 7, "values": [[...], ...]}, or
// {"error": "..."}. A "resume" of that form, {"next": 13, "fingerprint": 7}, stands for "begin".
#include <iostream>
#include <string>

#include "base/error.h"
#include "data/dataset.h"

namespace {

using sluice::Json;
using sluice::data::FieldKind;

sluice::data::JsonlField field_of(const Json& json) {
  const std::string kind = json.value("kind", "text");
  return {.name = json.at("name").get<std::string>(),
          .param = json.at("name").get<std::string>() + "_field",
          .kind = kind == "messages" ? FieldKind::kMessages
                  : kind == "either" ? FieldKind::kTextOrMessages
                                     : FieldKind::kText,
          .required = json.value("required", true),
          .nullable = json.value("nullable", false)};
}

Json answer(const Json& question) {
  sluice::data::DatasetOptions options{.paths = {}, .weights = {}, .shuffle = question.value("shuffle", false), .epochs = 0};
  options.seed = question.value("seed", uint64_t{0});
  for (const Json& path : question.at("paths")) options.paths.emplace_back(path.get<std::string>());
  std::vector<sluice::data::JsonlField> fields;
  for (const Json& field : question.at("fields")) fields.push_back(field_of(field));

  sluice::data::Dataset dataset(options, fields);
  uint64_t begin = question.value("begin", uint64_t{0});
  if (const auto saved = question.find("resume"); saved != question.end())
    begin = dataset.resume({saved->at("next").get<uint64_t>(), saved->at("fingerprint").get<uint32_t>()});
  const uint64_t end = begin + question.value("count", static_cast<uint64_t>(dataset.rows()));
  Json values = Json::array();
  for (uint64_t position = begin; position < end; ++position) values.push_back(dataset.values(*dataset.row_at(position)));
  const auto saved = dataset.position(end);
  return {{"rows", dataset.rows()}, {"next", saved.next}, {"fingerprint", saved.fingerprint}, {"values", values}};
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    Json answered;
    try {
      answered = answer(sluice::parse_json(line, "line"));
    } catch (const sluice::UserError& error) {
      answered = {{"error", error.what()}};
    }
    std::cout << answered.dump() << std::endl;
  }
  return 0;
}
