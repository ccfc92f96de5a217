#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/device_name.h"
#include "base/process/machine.h"
#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/memory/memory_bound.h"
#include "engine/memory/memory_needs.h"

// Bytes: does the run fit into the memory that there is?
namespace sluice::engine::checking {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr double kTight = 0.9;  // from this share on a warning: other programs need memory too

std::string who(const MemoryNeed& need) { return need.role.empty() ? "the run" : "a rank of role " + sluice::quoted(need.role); }

/// One line of the table.
struct Share {
  const char* name;
  int64_t bytes;
  const char* remark;  // mostly the key that it grows with
};

const char* copy_remark(const Plan& plan) {
  if (plan.schedule.policy_lag > 0) return "with older versions for policy_lag";
  return "copy = \"memory\" in [checkpoint]";
}

std::vector<Share> shares_of(const Plan& plan, const MemoryNeed& need) {
  const PlanMemory& memory = need.memory;
  const char* copies = plan.schedule.policy_lag > 0 ? "of the models; policy_lag + 1 published copies" : "of the models";
  std::vector<Share> shares{
      {"weights", memory.weights_bytes, copies},
      {"gradients", memory.gradient_bytes, "of the models that are trained"},
      {"optimizer", memory.optimizer_bytes, "of the models that are trained"},
      {"checkpoint copy", memory.copy_bytes, copy_remark(plan)},
      {"KV cache", memory.kv_bytes, "grows with tokens_in_flight"},
      {"columns", memory.column_bytes, "grows with tokens_in_flight"},
      {"activations", memory.activation_bytes,
       plan.samples(need.rank) && !plan.trains(need.rank) ? "of a step of a rollout" : "grows with pass_tokens"},
      {"allocator", memory.slack_bytes, "what it keeps beside: 5 % of KV cache, columns and activations"}};
  std::erase_if(shares, [](const Share& share) { return share.bytes == 0; });
  return shares;
}

std::vector<std::string> table_of(const Plan& plan, const MemoryNeed& need) {
  constexpr size_t kBytesWidth = 8;
  const std::vector<Share> shares = shares_of(plan, need);
  size_t width = 12;
  for (const Share& share : shares) width = std::max(width, std::string_view(share.name).size() + 1);
  std::vector<std::string> lines;
  for (const Share& share : shares)
    lines.push_back(padded(share.name, width) + padded_before(human_bytes(share.bytes), kBytesWidth) + "   " + share.remark);
  return lines;
}

int64_t longest_sample(const Plan& plan) {
  int64_t longest = 0;
  for (const PlanNode& node : plan.nodes) longest = std::max(longest, node.needs.worst_sample_tokens);
  return longest;
}

// With copy and pass as they are in the plan, of a rank: on the host, and after it on its devices.
void add_memories(const Plan& plan, int rank, const std::vector<PlanDevice>& devices, std::vector<PlanMemory>& all) {
  all.push_back(predict_memory(plan, plan.training_tokens(), rank));
  all.back().machine_bytes = plan.memory.machine_bytes;
  for (const PlanDevice& device : devices) {
    all.push_back(predict_memory(plan, plan.training_tokens(), rank, device.name));
    all.back().machine_bytes = device.memory.machine_bytes;
  }
}

// Of all ranks that compute passes: first of one that trains, on the host.
std::vector<PlanMemory> memories_of(const Plan& plan) {
  std::vector<PlanMemory> all;
  add_memories(plan, 0, plan.devices, all);
  for (const PlanRole& role : plan.forward_roles) add_memories(plan, role.first_rank, role.devices, all);
  return all;
}

bool leaves_memory_to(const Plan& plan) { return std::ranges::all_of(memories_of(plan), leaves_memory); }

// Where a copy leaves no memory of the host beside the largest pass it is given up, before the pass is: it costs while something
// is saved, a smaller pass always.
void choose_copy(Plan& plan) {
  plan.checkpoint_copy = plan.checkpoint.copy.value_or(CheckpointCopy::kMemory);
  if (plan.checkpoint.copy || snapshot_bytes(plan) == 0) return;
  if (plan.budget.pass_tokens.automatic)
    plan.budget.pass_tokens.value = std::max(plan.budget.micro_batch_tokens.value, longest_sample(plan));
  if (!leaves_memory(memories_of(plan).front())) plan.checkpoint_copy = CheckpointCopy::kNone;
}

// A whole micro-batch, or the largest pass that leaves memory; at least the longest sample, which is not cut.
void choose_pass(Plan& plan) {
  IntegerOrAuto& pass = plan.budget.pass_tokens;
  if (!pass.automatic) return;
  const auto fits = [&](int64_t tokens) {
    pass.value = tokens;
    return leaves_memory_to(plan);
  };
  const int64_t most = std::max(plan.budget.micro_batch_tokens.value, longest_sample(plan));
  if (fits(most)) return;
  int64_t enough = longest_sample(plan), too_many = most;
  while (enough + 1 < too_many) {
    const int64_t middle = enough + (too_many - enough) / 2;
    (fits(middle) ? enough : too_many) = middle;
  }
  pass.value = enough;
}

bool fits_into_memory(const Plan& plan) {
  return std::ranges::all_of(memories_of(plan), [](const PlanMemory& memory) {
    return memory.machine_bytes == 0 || memory.total_bytes() <= memory.machine_bytes;
  });
}

// Computing again takes a third more time, so it is the last resort: where not even a pass of the longest sample leaves memory,
// and only if it helps. Then the pass may be larger again.
void choose_recompute(Plan& plan) {
  if (leaves_memory_to(plan)) return;
  Plan recomputing = plan;
  for (PlanModel& model : recomputing.models) model.usage.recompute = model.usage.updated && model.facts.may_recompute;
  choose_pass(recomputing);
  const bool helps = leaves_memory_to(recomputing) || (!fits_into_memory(plan) && fits_into_memory(recomputing));
  if (helps) plan = std::move(recomputing);
}

// What less of its models takes less, by how much: adapters alone have gradients and moments that nobody notices.
void add_remedies_of_models(const Plan& plan, const MemoryNeed& need, std::vector<std::string>& ways) {
  const auto is_here = [&](const PlanModel& model) {
    const auto usage = plan.usage_on(need.rank, model);
    return model.facts.device == need.place && usage && usage->forwarding == Forwarding::kNone;
  };
  for (const PlanModel& model : plan.models) {
    if (!is_here(model) || !trains_most_of(model) || !plan.trains(need.rank)) continue;
    ways.push_back("lora in [models." + model.name + "] takes up to " + human_bytes(training_bytes(plan, model)) + " less");
  }
  for (const PlanModel& model : plan.models) {
    const PlanModel* const base = base_in_place_of(plan, model);
    if (base == nullptr || !is_here(model)) continue;
    ways.push_back("base_of = " + sluice::quoted(base->name) + " in [models." + model.name + "]" +
                   (base->facts.has_base ? "" : ", beside that lora,") + " takes " + human_bytes(model.facts.weight_bytes) +
                   " less");
  }
}

std::string remedies(const Plan& plan, const MemoryNeed& need) {
  const PlanMemory& memory = need.memory;
  const bool trains = plan.trains(need.rank), computes = trains || plan.forwards(need.rank);
  const std::string of_role = need.role.empty() ? std::string() : " in [cluster.roles." + need.role + "]";
  std::vector<std::string> ways;
  const int64_t tokens = tokens_that_fit(plan, need);
  if (tokens > 0) {
    ways.push_back("tokens_in_flight <= " + std::to_string(tokens) + of_role + " fits");
  } else if (memory.kv_bytes + memory.column_bytes > 0 && tokens_of(plan, need) > least_tokens_of(plan, need)) {
    ways.push_back("a smaller tokens_in_flight takes less KV cache and columns");
  }
  const bool others_fit = memory.total_bytes() - memory.activation_bytes < memory.machine_bytes;  // else no pass is small enough
  if (computes && others_fit && memory.activation_bytes > 0 && plan.budget.pass_tokens.value > longest_sample(plan)) {
    ways.push_back("a smaller pass_tokens takes less activations");
  }
  if (tokens == 0) add_remedies_of_models(plan, need, ways);
  if (trains && plan.training_ranks() > 1 && !plan.shards_optimizer() && memory.optimizer_bytes > 0) {
    const int64_t others = memory.optimizer_bytes - memory.optimizer_bytes / plan.training_ranks();
    ways.push_back("shard = \"optimizer\" in [cluster] takes " + human_bytes(others) + " less");
  }
  if (const int64_t others = need.is_host() ? sharded_bytes(plan, need.rank) : 0; tokens == 0 && others > 0)
    ways.push_back("shard = \"parameters\" in [cluster], with all ranks that train on one host, takes " + human_bytes(others) +
                   " less");
  if (const std::vector<PassRanks> more = more_pass_ranks(plan); trains && tokens == 0 && !more.empty()) {
    const std::string ring = more.back().ring > 1 ? " and ring = " + std::to_string(more.back().ring) : "";
    ways.push_back("sequence_parallel = " + std::to_string(more.back().ranks) + ring + " in [cluster] takes up to " +
                   human_bytes(shared_pass_bytes(plan, more.back(), need.place)) + " less");
  }
  if (trains && need.is_host() && plan.checkpoint_copy == CheckpointCopy::kMemory && snapshot_bytes(plan) > 0)
    ways.push_back("copy = \"none\" in [checkpoint] takes " + human_bytes(snapshot_bytes(plan)) + " less");
  if (plan.schedule.policy_lag > 0 && !plan.forwards(need.rank))
    ways.push_back("a smaller policy_lag takes fewer copies of weights");
  if (ways.empty()) return "smaller models, or a machine with more memory";
  if (tokens == 0 && !need.fits()) ways.emplace_back("`rlhf-run plan --fit` finds what fits together");
  return join(ways, "; ");
}

const PlanRole* role_of(const Draft& draft, const MemoryNeed& need) {
  return need.role.empty() ? nullptr : draft.plan.role_of(need.rank);
}

SourceSpan place(const Draft& draft, const MemoryNeed& need) {
  const auto device = std::ranges::find_if(draft.spec.devices, [&](const DeviceSpec& d) { return d.name.text == need.place; });
  const Table* const table = need.is_host()                       ? &draft.spec.runtime
                             : device == draft.spec.devices.end() ? nullptr
                                                                  : &device->params;
  const Entry* const given = table == nullptr ? nullptr : table->find("memory_gib");
  return given != nullptr ? given->value.where : place_of_tokens(draft, role_of(draft, need));
}

void judge(Draft& draft, const MemoryNeed& need) {
  if (!need.is_known()) return;
  const Plan& plan = draft.plan;
  const std::string needed = human_bytes(need.memory.total_bytes()), there = human_bytes(need.memory.machine_bytes);
  const std::string of_what = need.is_host() ? "memory" : "the memory of " + need.place;
  if (!need.fits()) {
    draft.error("memory-too-small", place(draft, need),
                who(need) + " needs up to " + needed + " of " + of_what + " and does not fit into " + there, {},
                remedies(plan, need), table_of(plan, need));
  } else if (need.share() > kTight) {
    draft.warning("memory-tight", place(draft, need),
                  who(need) + " needs up to " + needed + " of " + there + " of " + of_what + ": little is left for anything else",
                  {}, remedies(plan, need), table_of(plan, need));
  }
}

int64_t bytes_of_gib(double gib) { return static_cast<int64_t>(std::min(gib * kGib, 9e18)); }

// 0: not known.
int64_t memory_of_device(const Draft& draft, const std::string& device) {
  const auto settings = draft.plan.device_settings.find(device);
  if (settings != draft.plan.device_settings.end() && settings->second.memory_gib > 0)
    return bytes_of_gib(settings->second.memory_gib);
  const auto name = device_name(device);
  const DeviceKind* const kind = name ? draft.registry.find_device_kind(name->kind) : nullptr;
  return kind == nullptr || !kind->memory_bytes ? 0 : kind->memory_bytes(name->number);
}

std::vector<PlanDevice> predicted_devices(const Draft& draft, int64_t tokens, int rank) {
  std::vector<PlanDevice> devices;
  for (const std::string& name : devices_of(draft.plan, rank)) {
    devices.push_back({.name = name, .memory = predict_memory(draft.plan, tokens, rank, name)});
    devices.back().memory.machine_bytes = memory_of_device(draft, name);
  }
  return devices;
}

}  // namespace

void check_memory(Draft& draft) {
  Plan& plan = draft.plan;
  const int64_t there = plan.runtime.memory_gib > 0 ? bytes_of_gib(plan.runtime.memory_gib) : memory_of_machine();
  plan.memory.machine_bytes = there;
  plan.devices = predicted_devices(draft, plan.training_tokens(), 0);
  for (PlanRole& role : plan.forward_roles) role.devices = predicted_devices(draft, role.tokens_in_flight, role.first_rank);
  choose_copy(plan);
  choose_pass(plan);
  choose_recompute(plan);
  plan.memory = predict_memory(plan, plan.training_tokens());
  plan.memory.machine_bytes = there;
  plan.devices = predicted_devices(draft, plan.training_tokens(), 0);
  const auto predict = [&](PlanRole& role) {
    role.memory = predict_memory(plan, role.tokens_in_flight, role.first_rank);
    role.memory.machine_bytes = there;
    role.devices = predicted_devices(draft, role.tokens_in_flight, role.first_rank);
  };
  std::ranges::for_each(plan.roles, predict);
  std::ranges::for_each(plan.forward_roles, predict);
  if (plan.whole) predict(*plan.whole);
  for (const MemoryNeed& need : memory_needs(plan)) judge(draft, need);
}

}  // namespace sluice::engine::checking
