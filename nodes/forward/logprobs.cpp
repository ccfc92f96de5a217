#include "nodes/forward/logprobs.h"

#include <ATen/core/grad_mode.h>

#include "nodes/columns/columns.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/models/model_parts.h"

namespace sluice::nodes {

void Logprobs::describe(engine::Contract<LogprobsParams>& c) {
  using P = LogprobsParams;
  c.type("logprobs", "log-probability of each action under a model");
  c.model("model", &P::model, engine::ModelUse::kReads, "language_model").required().doc("whose live weights are asked");
  c.param("writes", &P::writes).doc("name of the column");
  c.param("temperature", &P::temperature).above(0).doc("divides the logits; as in the node that samples");
  c.param("replay_routes", &P::replay_routes)
      .doc("of a mixture of experts: the experts that sampled a token compute it, as `generate` writes them with routes = true");
  c.reads(columns::kTokens);
  c.reads_if([](const P& params) { return params.replay_routes; }, columns::kRoutes);
  c.writes_named(&P::writes, engine::DType::kFloat32, engine::Extent::kAction);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.must_agree["temperature"] = params.temperature;
    if (params.replay_routes) needs.routes_by = "replay_routes", needs.routes_column = columns::kRoutes.spec().name;
    // Against a reference that learns too, the KL penalty holds nothing in place; against the policy itself it is 0.
    if (params.writes == columns::kReferenceLogprobs.name && !needs.models.empty()) needs.models.front().expects_frozen = true;
  });
}

Logprobs::Logprobs(const LogprobsParams& params, engine::NodeResources& resources)
    : params_(params), model_(forward_model(resources, params.model)), pass_tokens_(resources.pass_tokens) {}

void Logprobs::process(engine::MicroBatch& batch) {
  const at::NoGradGuard no_gradient;
  SampleColumns samples_of{.tokens = batch.read(columns::kTokens)};
  if (params_.replay_routes) samples_of.routes = batch.read(columns::kRoutes);
  auto logprobs = batch.write({params_.writes, engine::DType::kFloat32, engine::Extent::kAction}).entries<float>();  // [A]
  const double temperature = params_.temperature.at(batch.iteration());
  const auto compute = [&](const RaggedSamples& samples) { return policy_logprobs(*model_, samples, temperature); };
  fill_in_passes(samples_of, batch.layout(), pass_tokens_, compute, logprobs);
  require_finite(logprobs, "log-probabilities of model " + model_->name());
}

}  // namespace sluice::nodes
