#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <utility>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/scorers/failed_samples.h"
#include "nodes/scorers/json/json_schema_checker.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

/// Where in a response its JSON stands.
enum class JsonPlace { kWhole, kFenced };

constexpr auto enum_names(JsonPlace) {
  return std::array{std::pair{JsonPlace::kWhole, "whole"}, std::pair{JsonPlace::kFenced, "fenced"}};
}

/// Scores 1 where the response is JSON that is valid under a schema, else 0.
///
///   [nodes.form]
///   type = "json_schema"
///   inputs = ["generate"]
///   schema = "answer.schema.json"   # JSON Schema, draft 7; what is supported: json_schema_checker.h
///   extract = "whole"               # all of the response; "fenced": its last block between ```json and ```
///
/// And the parameters of every scorer (scorer.h), on_error = "value" and error_value (failed_samples.h). Reads response[S];
/// writes score[S]  (S: samples). A response without a closed block scores 0 with extract = "fenced". A schema that cannot be
/// used is a UserError before the run.
struct JsonSchemaParams : ScorerParams, OnErrorParams {
  JsonSchemaParams() { on_error = OnError::kValue; }

  std::filesystem::path schema;
  JsonPlace extract = JsonPlace::kWhole;
};

class JsonSchema final : public engine::Node {
 public:
  static void describe(engine::Contract<JsonSchemaParams>& contract);

  JsonSchema(const JsonSchemaParams& params, engine::NodeResources& resources)
      : params_(params), node_(resources.node), checker_(params.schema), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 private:
  const JsonSchemaParams params_;
  const std::string node_;
  const JsonSchemaChecker checker_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
