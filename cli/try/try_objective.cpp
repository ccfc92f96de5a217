#include "cli/try/try_objective.h"

#include <numeric>

#include "base/error.h"
#include "base/text/strings.h"
#include "cli/try/try_tensors.h"
#include "nodes/objectives/action_draws.h"

namespace sluice::cli {
namespace {

using engine::ColumnSpec;
using nodes::Objective;
using nodes::ValueObjective;

Json metrics_to_json(const std::vector<nodes::ObjectiveMetric>& metrics) {
  Json json = Json::object();
  for (const nodes::ObjectiveMetric& metric : metrics) json[metric.name] = real_to_json(metric.value);
  return json;
}

// As in the first epoch of iteration 0 of a run with seed 0.
at::Tensor draws_of_all(const engine::Layout& layout) {
  std::vector<size_t> all(layout.samples());
  std::iota(all.begin(), all.end(), size_t{0});
  return nodes::draws_of(
      {}, layout, [](size_t group) { return static_cast<int64_t>(group); }, all);
}

}  // namespace

TriedObjective::TriedObjective(const std::string& kind, const std::shared_ptr<const void>& object) {
  if (kind == Objective::kComponent) policy_ = std::static_pointer_cast<const Objective>(object);
  if (kind == ValueObjective::kComponent) value_ = std::static_pointer_cast<const ValueObjective>(object);
  SLUICE_CHECK(policy_ || value_, "a component of kind " + kind + " is no objective");
}

std::vector<ColumnSpec> TriedObjective::reads() const {
  std::vector<std::string> names;
  if (policy_) {
    const nodes::ObjectiveNeeds needs = policy_->needs();
    names = {"logprobs", "advantages"};
    if (needs.old_logprobs) names.push_back("old_logprobs");
    if (needs.rollout_logprobs) names.push_back("rollout_logprobs");
    if (needs.reference_logprobs) names.push_back("reference_logprobs");
    if (needs.entropy) names.push_back("entropy");
  } else {
    names = {"values", "returns"};
    if (value_->reads_old_values()) names.push_back("old_values");
  }
  std::vector<ColumnSpec> specs;
  for (const std::string& name : names) specs.push_back({name, engine::DType::kFloat32, engine::Extent::kAction});
  return specs;
}

nodes::ObjectiveResult TriedObjective::compute(const Tensors& given, const ColumnsInput& input) const {
  const auto column = [&](const char* name) {
    const auto found = given.find(name);
    return found == given.end() ? at::Tensor() : found->second;
  };
  const at::Tensor mask = input.has("mask") ? tensor_of(input.reals("mask")) : at::Tensor();
  if (policy_) {
    nodes::ObjectiveInputs inputs{.logprobs = column("logprobs"),
                                  .old_logprobs = column("old_logprobs"),
                                  .rollout_logprobs = column("rollout_logprobs"),
                                  .reference_logprobs = column("reference_logprobs"),
                                  .entropy = column("entropy"),
                                  .advantages = column("advantages"),
                                  .mask = mask,
                                  .action_offsets = input.layout().action_offsets,
                                  .draws = draws_of_all(input.layout())};
    inputs.step = nodes::found_in_step(*policy_, {inputs});
    return policy_->compute(inputs);
  }
  return value_->compute(
      {.values = column("values"), .old_values = column("old_values"), .returns = column("returns"), .mask = mask});
}

Json TriedObjective::run(const ColumnsInput& input) const {
  Tensors tensors;
  std::vector<std::string> trained;
  for (const ColumnSpec& column : reads()) {
    if (!input.has(column.name)) {
      throw UserError("the objective reads column '" + column.name + "', which is not given",
                      "given are " + join(input.names(), ", "));
    }
    const bool carries_gradient = column.name == "logprobs" || column.name == "values" || column.name == "entropy";
    tensors[column.name] = tensor_of(input.reals(column.name)).requires_grad_(carries_gradient);
    if (carries_gradient) trained.push_back(column.name);
  }

  const nodes::ObjectiveResult result = compute(tensors, input);
  const at::Tensor loss = result.count > 0 ? result.loss_sum.div(result.count) : result.loss_sum;
  loss.backward();

  Json json;
  json["loss"] = real_to_json(loss.item().toDouble());
  json["loss_sum"] = real_to_json(result.loss_sum.item().toDouble());
  const auto whole = static_cast<int64_t>(result.count);  // unless a mask has parts of one
  json["count"] = static_cast<double>(whole) == result.count ? Json(whole) : Json(result.count);
  json["gradient"] = Json::object();
  for (const std::string& name : trained) {
    const at::Tensor grad = tensors[name].grad();
    json["gradient"][name] = actions_to_json(vector_of(grad.defined() ? grad : tensors[name].detach().mul(0)), input.layout());
  }
  json["metrics"] = metrics_to_json(result.metrics);
  return json;
}

}  // namespace sluice::cli
