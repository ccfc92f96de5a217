#include <algorithm>
#include <numeric>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"

namespace sluice::engine::checking {
namespace {

// What ranks have in common is the host's.
void check_common(Draft& draft, const DraftModel& model) {
  if (!draft.right.cluster || !draft.plan.shards_parameters() || model.params == nullptr || model.facts.device == "cpu") return;
  draft.error(
      "setting-unusable", place_of(draft.spec.cluster, "shard", draft.spec.where),
      "shard = \"parameters\" shares memory of the host, and model '" + model.spec->name.text + "' is on " + model.facts.device,
      {}, "shard = \"optimizer\", or device = \"cpu\" in [models." + model.spec->name.text + "]");
}

// A model that passes are computed of, by ranks that may do so together.
bool is_in_passes(const DraftModel& model) {
  return (model.updater >= 0 || model.has_live_reader) && !model.forwarded && model.params != nullptr &&
         model.facts.base_of.empty();
}

// Of a ring all ranks compute with each other's keys: with kernels of the CPU.
void check_ring(Draft& draft) {
  std::vector<std::string> elsewhere;
  for (const DraftModel& model : draft.models)
    if (is_in_passes(model) && model.facts.device != "cpu")
      elsewhere.push_back("'" + model.spec->name.text + "' is on " + model.facts.device);
  if (draft.plan.ring() == 1 || elsewhere.empty()) return;
  draft.error("setting-unusable", place_of(draft.spec.cluster, "ring", draft.spec.where),
              "ranks compute attention around a ring on the CPU: " + join(elsewhere, ", "), {},
              "remove ring, with a sequence_parallel that divides the heads of keys and values");
}

// Of the ranks that compute passes together each one of a block has some heads of all models, told once of all that do not allow
// it.
void check_shared_passes(Draft& draft) {
  if (!draft.right.cluster || draft.plan.pass_ranks() == 1) return;
  check_ring(draft);
  const int64_t together = draft.plan.pass_ranks(), ranks = together / draft.plan.ring();
  int64_t common = 0;  // the largest number of ranks that divides all of them
  bool all_on_cpu = true;
  std::vector<std::string> unfit;
  for (const DraftModel& model : draft.models) {
    if (!is_in_passes(model)) continue;
    const int64_t heads = model.facts.key_heads;
    all_on_cpu &= model.facts.device == "cpu";
    common = std::gcd(common, heads);
    if (heads == 0 || heads % ranks != 0) unfit.push_back("'" + model.spec->name.text + "' has " + std::to_string(heads));
  }
  if (unfit.empty()) return;
  std::vector<std::string> fitting;
  for (int64_t fit = 2; fit <= common; ++fit)
    if (common % fit == 0) fitting.push_back(std::to_string(fit));
  std::vector<std::string> ways;
  if (!fitting.empty()) ways.push_back("sequence_parallel = " + join(fitting, " or "));
  if (common > 0 && all_on_cpu) ways.push_back("ring = " + std::to_string(together / std::gcd(together, common)));
  draft.error("setting-unusable", place_of(draft.spec.cluster, "sequence_parallel", draft.spec.where),
              plural(ranks, "rank") +
                  (draft.plan.ring() > 1 ? " of each block of the ring divide" : " that compute passes together divide") +
                  " the heads of keys and values among them: " + join(unfit, ", "),
              {}, ways.empty() ? "remove sequence_parallel" : join(ways, ", or "));
}

// Likewise of those that sample together, which have heads of the KV cache, too.
void check_shared_sampling(Draft& draft) {
  if (!draft.right.cluster || draft.plan.sampling_ranks() == 1) return;
  const int ranks = draft.plan.sampling_ranks();
  std::vector<std::string> unfit;
  for (const DraftModel& model : draft.models) {
    if (model.sampler < 0 || model.params == nullptr || !model.facts.base_of.empty()) continue;
    if (!model.facts.sampled_alone.empty())
      unfit.push_back("'" + model.spec->name.text + "' " + model.facts.sampled_alone);
    else if (model.facts.key_heads % ranks != 0)
      unfit.push_back("'" + model.spec->name.text + "' has " + std::to_string(model.facts.key_heads));
  }
  if (unfit.empty()) return;
  draft.error(
      "setting-unusable", place_of(draft.spec.cluster, "tensor_parallel", draft.spec.where),
      plural(ranks, "rank") + " that sample together divide the heads of keys and values among them: " + join(unfit, ", "), {},
      "remove tensor_parallel, or one that divides the heads of all models that are sampled from");
}

// Of every mixture each rank has as many experts, on the CPU.
void check_shared_experts(Draft& draft) {
  const int ranks = draft.right.cluster ? draft.plan.expert_ranks() : 1;
  if (ranks == 1) return;
  const SourceSpan where = place_of(draft.spec.cluster, "expert_parallel", draft.spec.where);
  const bool all_known = std::ranges::all_of(draft.models, [](const DraftModel& model) { return model.params != nullptr; });
  if (all_known && std::ranges::none_of(draft.models, [](const DraftModel& model) { return model.facts.is_mixture(); })) {
    return draft.error("setting-without-effect", where, "expert_parallel shares out experts, and no model is a mixture of them",
                       {}, "remove expert_parallel");
  }
  std::vector<std::string> unfit;
  int64_t common = 0;
  for (const DraftModel& model : draft.models) {
    if (model.params == nullptr || !model.facts.base_of.empty() || !model.facts.is_mixture() || model.forwarded) continue;
    common = std::gcd(common, model.facts.experts);
    const bool is_sampled = model.sampler >= 0 && !draft.plan.has_roles();
    if ((is_sampled || is_in_passes(model)) && model.facts.device != "cpu")
      unfit.push_back("'" + model.spec->name.text + "' is on " + model.facts.device);
    else if (model.facts.experts % ranks != 0)
      unfit.push_back("'" + model.spec->name.text + "' has " + std::to_string(model.facts.experts));
  }
  if (unfit.empty()) return;
  draft.error("setting-unusable", where,
              plural(ranks, "rank") + " divide the experts of a layer among them, on the CPU: " + join(unfit, ", "), {},
              common % ranks == 0 ? "device = \"cpu\", or remove expert_parallel"
                                  : "remove expert_parallel, or one that divides the experts of all mixtures");
}

}  // namespace

void check_shared_models(Draft& draft) {
  for (const DraftModel& model : draft.models) check_common(draft, model);
  check_shared_passes(draft);
  check_shared_sampling(draft);
  check_shared_experts(draft);
}

}  // namespace sluice::engine::checking
