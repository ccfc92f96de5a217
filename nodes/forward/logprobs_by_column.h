#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/passes/forward_model.h"

namespace sluice::nodes {

/// What is asked where a column has a value.
struct ModelOfValue {
  std::string value;
  std::string model;
};

/// Log-probability of each action under the model that a column of the data chooses: a teacher for mathematics, another one for
/// programs. Each sample is computed by one model alone.
///
///   [nodes.teacher]
///   type = "logprobs_by_column"
///   inputs = ["generate"]
///   by = "domain"                     # a text column, which the source has from a field: columns = ["domain"]
///   models = [{ value = "math", model = "math_teacher" }, { value = "code", model = "code_teacher" }]
///   otherwise = "general_teacher"     # for all other values; without it they are errors
///   writes = "teacher_logprobs"       # the column's name
///   temperature = 1.0                 # as in generate
///
/// Reads tokens[T] and `by`[G]; writes `writes`[A], natural logs, under the live weights. No gradient. Computed in passes of
/// [budget] pass_tokens of each model, which change no bit of it on the CPU. Without `otherwise` the source refuses rows with
/// another value before the run, by file and line; one that comes from elsewhere is a UserError that names its group.
struct LogprobsByColumnParams {
  std::string by;
  std::vector<ModelOfValue> models;
  std::string otherwise;
  std::string writes = "teacher_logprobs";
  engine::ScheduledNumber temperature = 1.0;
};

class LogprobsByColumn final : public engine::Node {
 public:
  static void describe(engine::Contract<LogprobsByColumnParams>& contract);

  LogprobsByColumn(const LogprobsByColumnParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  // The groups of each model, ascending.
  std::map<std::string, std::vector<size_t>> groups_by_model(const engine::MicroBatch& batch) const;

  const LogprobsByColumnParams params_;
  std::map<std::string, std::shared_ptr<const ForwardModel>> models_;  // by name
  const int64_t pass_tokens_;
};

}  // namespace sluice::nodes
