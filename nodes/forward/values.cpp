#include "nodes/forward/values.h"

#include <ATen/core/grad_mode.h>

#include "nodes/columns/columns.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/models/model_parts.h"

namespace sluice::nodes {

void Values::describe(engine::Contract<ValuesParams>& c) {
  c.type("values", "what a critic expects from each action on");
  c.model("model", &ValuesParams::model, engine::ModelUse::kReads, "value").required().doc("the critic");
  c.reads(columns::kTokens);
  c.writes(columns::kValues);
}

Values::Values(const ValuesParams& params, engine::NodeResources& resources)
    : model_(forward_model(resources, params.model)), pass_tokens_(resources.pass_tokens) {}

void Values::process(engine::MicroBatch& batch) {
  const at::NoGradGuard no_gradient;
  const auto tokens = batch.read(columns::kTokens);  // [T]
  auto values = batch.write(columns::kValues);       // [A]
  const auto compute = [&](const RaggedSamples& samples) { return critic_values(*model_, samples); };
  fill_in_passes({tokens}, batch.layout(), pass_tokens_, compute, values);
  require_finite(values, "values of model " + model_->name());
}

}  // namespace sluice::nodes
