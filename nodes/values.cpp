#include "nodes/values.h"

#include <ATen/core/grad_mode.h>

#include "nodes/columns.h"
#include "nodes/forward.h"
#include "nodes/ragged.h"

namespace sluice::nodes {

void Values::describe(engine::Contract<ValuesParams>& c) {
  c.type("values", "what a critic expects from each action on");
  c.model("model", &ValuesParams::model, engine::ModelUse::kReads, "value").required().doc("the critic");
  c.reads(columns::kTokens);
  c.writes(columns::kValues);
}

Values::Values(const ValuesParams& params, engine::NodeResources& resources) : model_(language_model(resources, params.model)) {}

void Values::process(engine::MicroBatch& batch) {
  const at::NoGradGuard no_gradient;
  const auto tokens = batch.read(columns::kTokens);  // [T]
  auto values = batch.write(columns::kValues);       // [A]
  if (values.empty()) return;
  copy_entries(critic_values(model_->transformer(), all_samples(tokens, batch.layout())), values);
  require_finite(values, "values of model " + model_->name());
}

}  // namespace sluice::nodes
