#include "engine/memory/memory_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/numbers/float_range.h"
#include "base/numbers/sum_tree.h"
#include "engine/memory/kv_bound.h"
#include "engine/plan/cluster_work.h"
#include "engine/plan/rank_groups.h"
#include "engine/plan/saturating.h"

namespace sluice::engine {
namespace {

// Memory that allocators keep beside what they have given out: fragments, rounding, caches. What belongs to models, and copies of
// it, are few large blocks that stay.
constexpr double kAllocatorShare = 0.05;

// Of a path, for a budget of so many tokens.
int64_t in_flight(const Plan& plan, const PlanPath& path, int64_t tokens_in_flight) {
  const PlanCapacity& capacity = path.capacity;
  return std::min(plan.share_of(path, tokens_in_flight), saturating_product(capacity.open_iterations, capacity.iteration_tokens));
}

int64_t slack_of(const PlanMemory& memory) {
  const int64_t comes_and_goes = saturating_sum(saturating_sum(memory.kv_bytes, memory.column_bytes), memory.activation_bytes);
  return static_cast<int64_t>(std::ceil(static_cast<double>(comes_and_goes) * kAllocatorShare));
}

// Of what ranks have in common, numbers of four bytes, what the first one has, which has most.
int64_t part_of_rank(const Plan& plan, int64_t bytes) {
  constexpr int64_t kNumber = sizeof(float);
  return kNumber * floats_of(owned_floats(buckets_of(bytes / kNumber), 0, plan.shard_ranks()));
}

// What other groups have added up of what the first rank owns of a bucket, on its way there.
int64_t given_bytes(const Plan& plan, int64_t gradient_bytes) {
  int64_t most = 0;
  for (const FloatRange& own : owned_floats(buckets_of(gradient_bytes / int64_t{sizeof(float)}), 0, plan.training_ranks()))
    most = std::max(most, own.size());
  return (plan.shard_groups() - 1) * most * int64_t{sizeof(int64_t)};
}

bool has_in_common(const Plan& plan, int rank) { return plan.shards_parameters() && plan.trains(rank); }

// A published copy. Of a model without live weights beside them, or with those of another one, or with nothing in common, every
// rank has its own; and where some ranks assist, who have none, or where they sample too a part.
int64_t copy_bytes(const Plan& plan, const PlanModel& model, const ModelUsage& usage, int rank) {
  const bool has_live = usage.has_live_weights(model.facts.reads_published) && model.facts.base_of.empty();
  const bool common = has_in_common(plan, rank) && has_live && model.facts.common_bytes > 0 && plan.pass_ranks() == 1;
  if (usage.samples_together() && model.facts.shared_version_bytes)
    return model.facts.shared_version_bytes(usage.sampling_ranks, usage.expert_ranks);
  return common ? divided_up(model.facts.published_bytes, plan.shard_ranks()) : model.facts.published_bytes;
}

int64_t live_bytes(const Plan& plan, const ModelFacts& facts, int rank) {
  if (!has_in_common(plan, rank)) return facts.weight_bytes;
  return facts.weight_bytes - facts.common_bytes + part_of_rank(plan, facts.common_bytes);
}

// A buffer a slot; in common sums of eight bytes, and what is on its way there.
int64_t gradient_bytes(const Plan& plan, const ModelFacts& facts) {
  if (!sums_in_common(plan, facts)) return saturating_product(facts.gradient_bytes, plan.slots_of_rank());
  const bool shares = plan.expert_ranks() > 1 && facts.shared_passing_bytes;
  const int64_t passing = shares ? facts.shared_passing_bytes(plan.expert_ranks()) : facts.passing_bytes;
  const int64_t sums = saturating_sum(2 * part_of_rank(plan, facts.gradient_bytes), given_bytes(plan, facts.gradient_bytes));
  return saturating_sum(sums, passing);
}

// What the first rank keeps of the optimizer's state, which owns most: some numbers for each parameter.
int64_t optimizer_bytes(const Plan& plan, const ModelFacts& facts) {
  const int64_t trained = facts.gradient_bytes / static_cast<int64_t>(sizeof(float));
  if (!plan.shards_optimizer() || trained == 0) return facts.optimizer_bytes;
  const double of_parameter = static_cast<double>(facts.optimizer_bytes) / static_cast<double>(trained);
  return std::llround(of_parameter * static_cast<double>(floats_of(owned_floats(buckets_of(trained), 0, plan.training_ranks()))));
}

// Of the copy that is taken to be saved: a rank copies what it has.
int64_t snapshot_of_rank(const Plan& plan, const ModelFacts& facts) {
  const int64_t weights = facts.snapshot_bytes - facts.optimizer_bytes;
  return (sums_in_common(plan, facts) ? part_of_rank(plan, weights) : weights) + optimizer_bytes(plan, facts);
}

// The copy of what is trained that is being saved, and older versions of it, which are kept and may be in a copy that is being
// written; after a publication one more of these is kept. What is saved without a copy is written before it is published.
int64_t bytes_to_save(const Plan& plan, const PlanModel& model) {
  const bool copied = plan.checkpoint_copy == CheckpointCopy::kMemory;
  const int64_t versions = saturating_product(copied ? 2 : 1, model.usage.versions.kept_to_save());
  const int64_t snapshot = copied ? snapshot_of_rank(plan, model.facts) : 0;
  return saturating_sum(snapshot, saturating_product(model.facts.version_bytes, versions));
}

}  // namespace

int64_t sharded_bytes(const Plan& plan, int rank) {
  if (!plan.trains(rank) || plan.shards_parameters() || plan.training_ranks() == 1) return 0;
  Plan sharded = plan;
  sharded.cluster.shard = Shard::kParameters;
  const auto of_models = [&](const Plan& of) {
    const PlanMemory memory = predict_memory(of, of.training_tokens(), rank);
    return memory.weights_bytes + memory.gradient_bytes + memory.optimizer_bytes + memory.copy_bytes;
  };
  return of_models(plan) - of_models(sharded);
}

int64_t snapshot_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const PlanModel& model : plan.models) {
    if (model.usage.updated) bytes = saturating_sum(bytes, snapshot_of_rank(plan, model.facts));
  }
  return bytes;
}

int64_t predict_kv_bytes(const Plan& plan, const PlanPath& path, int64_t tokens_in_flight) {
  const bool for_others = plan.has_roles();
  const int64_t tokens = for_others ? plan.share_of(path, tokens_in_flight) : in_flight(plan, path, tokens_in_flight);
  int64_t bytes = 0;
  for (const ModelNeed& need : plan.maker_of(path).needs.models) {
    const PlanModel* model = plan.find_model(need.model);
    if (model == nullptr || need.use != ModelUse::kSamples || !path.rollout) continue;
    bytes = saturating_sum(bytes, worst_kv_bytes(plan, path, model->facts, tokens));
  }
  return bytes;
}

std::string place_of_pool(const Plan& plan, const PlanPath& path) {
  for (const ModelNeed& need : plan.maker_of(path).needs.models) {
    const PlanModel* model = plan.find_model(need.model);
    if (model != nullptr && need.use == ModelUse::kSamples) return model->facts.device;
  }
  return kHost;
}

// Of what the rank has of a path: what it trains, and what it makes for others, which roles may have made for several ranks each.
// On demand the finished ones of these may have given their credit up.
int64_t column_tokens(const Plan& plan, const PlanPath& path, int64_t tokens_in_flight, int rank) {
  const int64_t trained = plan.trains(rank) ? in_flight(plan, path, tokens_in_flight) : 0,
                share = plan.share_of(path, tokens_in_flight);
  if (!plan.samples(rank) || !plan.shares_making(path, share)) return trained;
  if (!plan.has_roles()) return saturating_sum(trained, trained);
  return saturating_product(share, plan.takes_on_demand(plan.maker_of(path)) ? 1 + kBudgetsInTheMaking : 1);
}

// Where the model is.
void add_model(const Plan& plan, const PlanModel& model, int rank, PlanMemory& memory) {
  const std::optional<ModelUsage> usage = plan.usage_on(rank, model);
  if (!usage) return;
  const int64_t published = saturating_product(copy_bytes(plan, model, *usage, rank), usage->versions.readable);
  const int64_t live = usage->has_live_weights(model.facts.reads_published) ? live_bytes(plan, model.facts, rank) : 0;
  const int64_t held = usage->received ? model.facts.received_bytes : live;
  memory.weights_bytes = saturating_sum(memory.weights_bytes, saturating_sum(held, published));
  if (!usage->updated) return;
  memory.gradient_bytes += gradient_bytes(plan, model.facts);
  memory.optimizer_bytes += optimizer_bytes(plan, model.facts);
}

// Of a model on a device, what ranks give each other of gradients and weights: a buffer for each subtree of a rank's slots.
int64_t exchanged_bytes(const Plan& plan, const ModelFacts& facts, int rank) {
  if (facts.device == kHost || plan.training_ranks() == 1) return 0;
  const World trainers = trainers_of(plan, rank);
  return saturating_product(facts.gradient_bytes, std::ssize(subtrees_of(trainers.slots, trainers.mine())));
}

// On the host, wherever the model is.
void add_copies(const Plan& plan, const PlanModel& model, int rank, PlanMemory& memory) {
  const std::optional<ModelUsage> usage = plan.usage_on(rank, model);
  if (!usage || !usage->updated) return;
  memory.copy_bytes = saturating_sum(memory.copy_bytes, bytes_to_save(plan, model));
  memory.copy_bytes = saturating_sum(memory.copy_bytes, exchanged_bytes(plan, model.facts, rank));
  // What is sent of a version stays until others have it, and no more versions are on their way than samples may lag behind.
  if (!usage->sent) return;
  const int64_t versions = saturating_product(plan.schedule.policy_lag + 1, model.facts.wire_bytes);
  memory.copy_bytes = saturating_sum(memory.copy_bytes, divided_up(versions, plan.owners()));
}

std::vector<std::string> devices_of(const Plan& plan, int rank) {
  std::set<std::string> devices;
  for (const PlanModel& model : plan.models) {
    const std::optional<ModelUsage> usage = plan.usage_on(rank, model);
    if (model.facts.device != kHost && usage && usage->forwarding != Forwarding::kAsks) devices.insert(model.facts.device);
  }
  return {devices.begin(), devices.end()};
}

PlanMemory predict_memory(const Plan& plan, int64_t tokens_in_flight, int rank, const std::string& place) {
  PlanMemory memory;
  const bool is_host = place == kHost;
  for (const PlanModel& model : plan.models) {
    if (model.facts.device == place) add_model(plan, model, rank, memory);
    if (is_host) add_copies(plan, model, rank, memory);
  }
  for (const PlanPath& path : plan.paths) {
    if (plan.samples(rank) && place_of_pool(plan, path) == place)
      memory.kv_bytes = saturating_sum(memory.kv_bytes, predict_kv_bytes(plan, path, tokens_in_flight));
    if (!is_host || plan.forwards(rank)) continue;  // which has no columns
    const int64_t tokens = column_tokens(plan, path, tokens_in_flight, rank);
    memory.column_bytes = saturating_sum(memory.column_bytes, worst_column_bytes(plan, path, tokens));
  }
  memory.activation_bytes = worst_activation_bytes(plan, tokens_in_flight, rank, place);
  memory.slack_bytes = slack_of(memory);
  return memory;
}

bool leaves_memory(const PlanMemory& memory) {
  constexpr double kMost = 0.85;  // below the share that check_memory warns of
  if (memory.machine_bytes == 0) return true;
  return static_cast<double>(memory.total_bytes()) <= kMost * static_cast<double>(memory.machine_bytes);
}

// Only one iteration is in the rollout at a time. Where ranks make groups for each other, shorter ones of theirs may run beside
// all of this rank's.
int64_t worst_kv_bytes(const Plan& plan, const PlanPath& path, const ModelFacts& facts, int64_t tokens) {
  const PlanNode& maker = plan.maker_of(path);
  const NodeNeeds& rollout = maker.needs;
  const int64_t of_group = saturating_sum(std::max<int64_t>(1, rollout.samples_per_group), rollout.side_samples);
  const int64_t groups = saturating_product(path.capacity.drawn_groups, plan.shares_making(path, tokens) ? plan.owners() : 1);
  const int64_t samples = saturating_product(groups, of_group);
  const bool on_demand = plan.takes_on_demand(maker);
  const KvDemand demand{
      .tokens = std::min(tokens, saturating_product(path.capacity.iteration_tokens, plan.has_roles() ? plan.owners() : 1)),
      .least_sample_tokens = std::max<int64_t>(1, on_demand ? rollout.on_demand_tokens : rollout.least_sample_tokens),
      .worst_sample_tokens = rollout.worst_sample_tokens,
      .running_samples = rollout.running_samples > 0 ? std::min(rollout.running_samples, samples) : samples,
      .block_tokens = facts.kv_block_tokens,
      .samples_per_group = std::max<int64_t>(1, rollout.samples_per_group),
      // On demand a group may have the credit of one sample alone: then no prompt is shared.
      .shared_prompt_tokens = on_demand ? 0 : rollout.shared_prompt_tokens};
  // Of the heads that it has, and the routes of its tokens.
  const int64_t token_bytes =
      facts.kv_bytes_per_token / plan.sampling_ranks() + (rollout.routes_column.empty() ? 0 : facts.route_bytes_per_token);
  return saturating_product(worst_kv_blocks(demand), saturating_product(facts.kv_block_tokens, token_bytes));
}

int64_t route_bytes_of(const Plan& plan, const NodeNeeds& writer) {
  if (writer.routes_column.empty() || writer.models.empty()) return 0;
  const PlanModel* const model = plan.find_model(writer.models.front().model);
  return model == nullptr ? 0 : model->facts.route_bytes_per_token;
}

namespace {

// Of a pass of a rank, or of a step of a generation; `pass` says how long it is.
int64_t activation_bytes_of(const Plan& plan, const PlanModel& model, ModelUse use, int rank, ModelPass pass) {
  const bool samples = use == ModelUse::kSamples, alone = samples || plan.forwards(rank);
  pass.training = use == ModelUse::kUpdates;
  pass.sampling = samples;
  pass.ranks = alone ? 1 : plan.pass_ranks();
  pass.ring = alone ? 1 : plan.ring();
  pass.expert_ranks = alone ? 1 : plan.expert_ranks();
  if (samples) pass.expert_ranks = plan.sampling_expert_ranks(model.facts);
  pass.recompute = model.usage.recompute;
  return model.facts.activation_bytes(pass);
}

}  // namespace

int64_t worst_activation_bytes(const Plan& plan, int64_t tokens_in_flight, int rank, const std::string& place) {
  std::map<std::string, int64_t> by_executor;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (!plan.computes(rank, static_cast<int>(i))) continue;
    const PlanNode& node = plan.nodes[i];
    const PlanPath& path = plan.path_of(static_cast<int>(i));
    const int64_t made = plan.maker_of(path).needs.worst_sample_tokens;
    const int64_t longest = std::max(made, node.needs.worst_sample_tokens);
    const int64_t micro_batch = path.capacity.micro_batch_tokens, pass = std::min(plan.budget.pass_tokens.value, micro_batch);
    const int64_t step = node.needs.step_tokens > 0 ? node.needs.step_tokens : micro_batch;
    const int64_t of_pass = path.rollout == static_cast<int>(i) ? step : pass;
    // Samples that the node makes longer than they came are not within the tokens in flight.
    const int64_t tokens =
        longest > made ? plan.budget.pass_tokens.value : std::min(of_pass, in_flight(plan, path, tokens_in_flight));
    int64_t sampling = 0;  // of the model that is sampled from, and of the one that guesses for it
    for (const ModelNeed& need : node.needs.models) {
      const PlanModel* model = plan.find_model(need.model);
      const bool computes = need.use != ModelUse::kPublishes && need.use != ModelUse::kAverages;
      if (model == nullptr || !model->facts.activation_bytes || !computes) continue;
      if (model->facts.device != place) continue;
      const int64_t bytes = activation_bytes_of(plan, *model, need.use, rank, {.tokens = tokens, .longest_sample = longest});
      if (need.use == ModelUse::kSamples) sampling = saturating_sum(sampling, bytes);
      int64_t& largest = by_executor[plan.forwards(rank) ? std::string() : node.executor];  // one pass at a time
      largest = std::max({largest, bytes, sampling});
    }
  }
  int64_t sum = 0;
  for (const auto& [executor, bytes] : by_executor) sum = saturating_sum(sum, bytes);
  return sum;
}

}  // namespace sluice::engine
