#include "nodes/forward/logprobs_by_column.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/models/model_parts.h"

namespace sluice::nodes {

using engine::MicroBatch;

namespace {

engine::ParamSet<ModelOfValue> model_of_value_params() {
  engine::ParamSet<ModelOfValue> params;
  params.param("value", &ModelOfValue::value).required().doc("of the column");
  params.param("model", &ModelOfValue::model).required().doc("whose live weights are asked then");
  return params;
}

void check_models_of_values(const LogprobsByColumnParams& params, engine::Findings& findings) {
  if (params.models.empty())
    findings.error("models", "no value has a model", "models = [{ value = \"math\", model = NAME }, ...]");
  std::set<std::string> seen;
  for (const ModelOfValue& of : params.models) {
    if (!seen.insert(of.value).second)
      findings.error("models", "value " + sluice::quoted(of.value) + " has two models",
                     "name one; distill has weights of teachers");
  }
}

void check_is_known(const std::string& value, const std::vector<std::string>& known) {
  if (std::ranges::find(known, value) != known.end()) return;
  std::vector<std::string> texts;
  for (const std::string& one : known) texts.push_back(sluice::quoted(one));
  const std::string near = did_you_mean(value, known);
  throw UserError("is none of " + join(texts, ", "),
                  (near.empty() ? std::string() : "did you mean " + sluice::quoted(near) + "? Else ") +
                      "add it to models, name a model in otherwise, or leave the row out");
}

}  // namespace

void LogprobsByColumn::describe(engine::Contract<LogprobsByColumnParams>& c) {
  using P = LogprobsByColumnParams;
  c.type("logprobs_by_column", "log-probability of each action under the model that a column chooses");
  c.param("by", &P::by).required().doc("text column of the groups that chooses, such as one of the source's `columns`");
  c.tables("models", &P::models, model_of_value_params()).required().doc("the model of each value");
  c.model("otherwise", &P::otherwise, engine::ModelUse::kReads, "language_model").doc("the model of all other values");
  c.param("writes", &P::writes).doc("name of the column");
  c.param("temperature", &P::temperature).above(0).doc("divides the logits; as in the node that samples");
  c.reads(columns::kTokens);
  c.reads_named(&P::by, engine::DType::kString, engine::Extent::kGroup);
  c.writes_named(&P::writes, engine::DType::kFloat32, engine::Extent::kAction);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    std::vector<std::string> known;
    for (const ModelOfValue& of : params.models) {
      needs.models.push_back({.param = "models", .model = of.model, .use = engine::ModelUse::kReads, .head = "language_model"});
      known.push_back(of.value);
    }
    if (params.otherwise.empty())
      needs.text_checks.push_back({params.by, [known](const std::string& value) { check_is_known(value, known); }, {}});
    needs.must_agree["temperature"] = params.temperature;
    for (engine::ModelNeed& need : needs.models) need.expects_frozen = params.writes == columns::kReferenceLogprobs.name;
  });
  c.check(check_models_of_values);
}

LogprobsByColumn::LogprobsByColumn(const LogprobsByColumnParams& params, engine::NodeResources& resources)
    : params_(params), pass_tokens_(resources.pass_tokens) {
  for (const ModelOfValue& of : params.models) models_[of.model] = forward_model(resources, of.model);
  if (!params.otherwise.empty()) models_[params.otherwise] = forward_model(resources, params.otherwise);
}

std::map<std::string, std::vector<size_t>> LogprobsByColumn::groups_by_model(const MicroBatch& batch) const {
  const auto values = batch.read(engine::Column<std::string>{params_.by.c_str(), engine::Extent::kGroup});  // [G]
  std::map<std::string, std::vector<size_t>> groups;
  for (size_t group = 0; group < values.size(); ++group) {
    const auto found = std::ranges::find(params_.models, values[group], &ModelOfValue::value);
    if (found == params_.models.end() && params_.otherwise.empty()) {
      throw UserError(params_.by + " of group " + std::to_string(batch.group_index(group)) + " is " +
                          sluice::quoted(values[group]) + ", which has no model",
                      "name one in models, or set otherwise");
    }
    groups[found == params_.models.end() ? params_.otherwise : found->model].push_back(group);
  }
  return groups;
}

void LogprobsByColumn::process(MicroBatch& batch) {
  const at::NoGradGuard no_gradient;
  const auto tokens = batch.read(columns::kTokens);                                                                  // [T]
  auto logprobs = batch.write({params_.writes, engine::DType::kFloat32, engine::Extent::kAction}).entries<float>();  // [A]
  const double temperature = params_.temperature.at(batch.iteration());
  for (const auto& [name, groups] : groups_by_model(batch)) {
    const ForwardModel& model = *models_.at(name);
    const auto compute = [&](const RaggedSamples& samples) { return policy_logprobs(model, samples, temperature); };
    fill_in_passes({tokens}, batch.layout(), samples_of_groups(batch.layout(), groups), pass_tokens_, compute, logprobs);
  }
  require_finite(logprobs, "log-probabilities under the models of " + params_.by);
}

}  // namespace sluice::nodes
