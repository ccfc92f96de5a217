#include "cli/try_objective.h"

#include <ATen/ops/from_blob.h>

#include <map>

#include "base/error.h"
#include "base/strings.h"

namespace sluice::cli {
namespace {

using engine::ColumnSpec;
using nodes::Objective;
using nodes::ValueObjective;

at::Tensor tensor_of(std::vector<double> values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kDouble).clone();
}

std::vector<double> vector_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

Json metrics_to_json(const std::vector<nodes::ObjectiveMetric>& metrics) {
  Json json = Json::object();
  for (const nodes::ObjectiveMetric& metric : metrics) json[metric.name] = real_to_json(metric.value);
  return json;
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
    names = {"logprobs", "advantages"};
    if (policy_->reads_old_logprobs()) names.push_back("old_logprobs");
  } else {
    names = {"values", "returns"};
    if (value_->reads_old_values()) names.push_back("old_values");
  }
  std::vector<ColumnSpec> specs;
  for (const std::string& name : names) specs.push_back({name, engine::DType::kFloat32, engine::Extent::kAction});
  return specs;
}

Json TriedObjective::run(const ColumnsInput& input) const {
  const std::vector<ColumnSpec> columns = reads();
  std::map<std::string, at::Tensor> tensors;  // [A] each; those that are not read stay undefined
  for (const ColumnSpec& column : columns) {
    if (!input.has(column.name)) {
      throw UserError("the objective reads column '" + column.name + "', which is not given",
                      "given are " + join(input.names(), ", "));
    }
    tensors[column.name] = tensor_of(input.reals(column.name));
  }
  at::Tensor trained = tensors[columns.front().name].requires_grad_(true);

  const nodes::ObjectiveResult result =
      policy_
          ? policy_->compute({.logprobs = trained, .old_logprobs = tensors["old_logprobs"], .advantages = tensors["advantages"]})
          : value_->compute({.values = trained, .old_values = tensors["old_values"], .returns = tensors["returns"]});
  const at::Tensor loss = result.count > 0 ? result.loss_sum.div(result.count) : result.loss_sum;
  loss.backward();

  Json json;
  json["loss"] = real_to_json(loss.item().toDouble());
  json["loss_sum"] = real_to_json(result.loss_sum.item().toDouble());
  json["count"] = static_cast<int64_t>(result.count);
  json["gradient"] = {{columns.front().name, actions_to_json(vector_of(trained.grad()), input.layout())}};
  json["metrics"] = metrics_to_json(result.metrics);
  return json;
}

}  // namespace sluice::cli
