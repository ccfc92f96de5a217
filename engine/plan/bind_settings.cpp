#include "engine/plan/bind_settings.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/device_name.h"
#include "base/process/machine.h"
#include "base/text/strings.h"
#include "engine/contract/settings.h"

namespace sluice::engine {
namespace {

std::ptrdiff_t count_of_errors(const Problems& problems) {
  return std::ranges::count(problems, Severity::kError, &Problem::severity);
}

// False: with an error.
template <class P>
bool bind_table(const std::string& name, const ParamSet<P>& params, const Table& table, const Registry& registry,
                Problems& problems, P& settings, Plan& plan) {
  const auto before = count_of_errors(problems);
  BindContext context{registry, problems, "[" + name + "]"};
  params.erased().bind(&settings, table, context);
  for (EffectiveKey& key : effective_keys(name, params.erased(), &settings, table)) plan.effective.push_back(std::move(key));
  return count_of_errors(problems) == before;
}

bool report_missing_table(const PipelineSpec& spec, const Table& table, Problems& problems, const std::string& name,
                          const std::string& lines) {
  if (table.where.known() || !table.empty()) return false;
  problems.push_back({.kind = "missing-table",
                      .where = spec.where,
                      .message = "the pipeline has no [" + name + "]",
                      .caret = {},
                      .notes = {},
                      .help = "add\n          [" + name + "]" + lines});
  return true;
}

// The name becomes part of the run folder's name.
void check_name(const PipelineSpec& spec, Problems& problems, const std::string& name) {
  if (is_pipeline_name(name)) return;
  const Entry* entry = spec.pipeline.find("name");
  problems.push_back(
      {.kind = "bad-name",
       .where = entry != nullptr ? entry->value.where : spec.where,
       .message = "a pipeline name consists of letters, digits, '_', '-' and '.': the run folder is called after it",
       .caret = {},
       .notes = {},
       .help = entry != nullptr ? "" : "give it one: name = \"...\" in [pipeline]"});
}

// A run writes below its folder. Where else it may write says the person who starts it, not the file that says what to run, which
// may be a stranger's.
void check_checkpoint_folder(const Table& table, Problems& problems) {
  const Entry* entry = table.find("folder");
  const auto* folder = entry == nullptr ? nullptr : std::get_if<std::string>(&entry->value.data);
  if (folder == nullptr || !entry->value.where.known() || entry->value.where.source->typed) return;
  problems.push_back({.kind = "path-outside",
                      .where = entry->value.where,
                      .message = "folder: a pipeline file may not let a run write outside of its run folder",
                      .caret = "only the command line may say this",
                      .notes = {},
                      .help = "remove it here, and start the run with --set checkpoint.folder=" + *folder});
}

std::string file_stem(const PipelineSpec& spec) {
  return spec.where.known() ? std::filesystem::path(spec.where.source->name).stem().string() : std::string("pipeline");
}

// Of a component or a table: which of the keys in it the preset has set.
std::string preset_keys_within(const std::string& key, const PresetScope& preset) {
  std::vector<std::string> keys;
  for (const PresetUse& use : *preset.uses) {
    if (use.given && (use.inside == key || use.inside.starts_with(key + "."))) keys.push_back(use.key);
  }
  return join(keys, ", ");
}

// Keys within a table that another layer has written than the table, and where.
void add_written_within(const Entry& of, const std::string& above, std::vector<std::string>& written) {
  const auto* const table = std::get_if<Table>(&of.value.data);
  if (table == nullptr) return;
  for (const Entry& entry : table->entries) {
    if (entry.key_where.source != of.key_where.source) written.push_back(origin_of(entry.key_where) + ": " + above + entry.key);
    add_written_within(entry, above + entry.key + ".", written);
  }
}

std::string origin_with_layers(const Entry& entry) {
  std::vector<std::string> origins{origin_of(entry.key_where)};
  add_written_within(entry, "", origins);
  return join(origins, "; ");
}

std::string origin_in(const Table& table, const std::string& key, const PresetScope& preset) {
  const Entry* entry = table.find(key);
  const std::string written = entry != nullptr ? origin_with_layers(*entry) : "default";
  if (preset.preset == nullptr || preset.uses == nullptr) return written;
  const std::string name = "preset " + preset.preset->name;
  const bool given =
      std::ranges::any_of(*preset.uses, [&](const PresetUse& use) { return use.given && use.inside.empty() && use.key == key; });
  const std::string within = preset_keys_within(key, preset);
  return (given ? name : written) + (within.empty() ? "" : "; " + name + ": " + within);
}

// A run that goes on with another number of ranks must have the slots of before, or say that it has not: they shape its sums.
void take_slots_of_ranks(Plan& plan) {
  plan.cluster.slots = plan.owners();
  const auto is_slots = [](const EffectiveKey& key) { return key.table == "cluster" && key.key == "slots"; };
  EffectiveKey& key = *std::ranges::find_if(plan.effective, is_slots);
  key.text = std::to_string(plan.owners());
  key.origin = "as many as ranks";
  key.why = "as many as ranks, since no file says it: --set cluster.slots=N goes on with N";
}

// The role of those that train; empty: there are none.
std::string name_of_trainers(const Plan& plan) {
  const PlanRole* const role = plan.role_of(0);
  return role == nullptr ? std::string() : role->name;
}

// Every rank has as many slots as every other.
void check_slots(const PipelineSpec& spec, Problems& problems, const Plan& plan) {
  const int owners = plan.owners();
  if (plan.slots() % owners == 0) return;
  const Entry* written = spec.cluster.find("slots");
  const std::string role = name_of_trainers(plan);
  problems.push_back({.kind = "slots-not-divided",
                      .where = written != nullptr ? written->value.where : spec.where,
                      .message = plural(plan.slots(), "slot") + " cannot be divided among " + plural(owners, "rank") +
                                 (role.empty() ? std::string() : " of role " + sluice::quoted(role) + ", which trains"),
                      .caret = {},
                      .notes = {},
                      .help = "slots = " + std::to_string((plan.slots() / owners + 1) * owners) + " in [cluster], or " +
                              (role.empty() ? "another number of ranks" : "other ranks in [cluster.roles." + role + "]")});
}

// Of the ranks that train each group has as many as every other; false: they cannot be parted so.
bool check_groups(const PipelineSpec& spec, Problems& problems, const Plan& plan) {
  const int ranks = plan.training_ranks(), together = plan.pass_ranks();
  if (ranks % together == 0) return true;
  const std::string role = name_of_trainers(plan);
  const int64_t more = (ranks / together + 1) * together;
  problems.push_back({.kind = "setting-unusable",
                      .where = spec.cluster.find("sequence_parallel")->value.where,
                      .message = plural(ranks, "rank") + (role.empty() ? "" : " of role " + sluice::quoted(role)) +
                                 " cannot be parted into groups of " + std::to_string(together) +
                                 ", which compute passes together",
                      .caret = {},
                      .notes = {},
                      .help = (role.empty() ? std::to_string(more) + " ranks"
                                            : "ranks = " + std::to_string(more) + " in [cluster.roles." + role + "]") +
                              ", or a sequence_parallel that divides " + std::to_string(ranks)});
  return false;
}

// Of the ranks that train each group that has weights in common has as many as every other.
void check_sharing(const PipelineSpec& spec, Problems& problems, const Plan& plan) {
  if (!plan.cluster.shard_ranks) return;
  const int64_t ranks = plan.training_ranks(), sharing = *plan.cluster.shard_ranks;
  const auto report = [&](const std::string& kind, const std::string& message, const std::string& help) {
    const SourceSpan where = spec.cluster.find("shard_ranks")->value.where;
    problems.push_back({.kind = kind, .where = where, .message = message, .caret = {}, .notes = {}, .help = help});
  };
  if (!plan.shards_parameters()) {
    return report("setting-without-effect", "shard_ranks have weights in common, which is what shard = \"parameters\" does",
                  "shard = \"parameters\" in [cluster], or remove shard_ranks");
  }
  if (ranks == 1 || ranks % sharing == 0) return;
  const std::string more = std::to_string((ranks / sharing + 1) * sharing), role = name_of_trainers(plan);
  report("setting-unusable",
         plural(ranks, "rank") + " that train cannot be parted into groups of " + std::to_string(sharing) +
             ", which have weights in common",
         (role.empty() ? more + " ranks" : "ranks = " + more + " in [cluster.roles." + role + "]") +
             ", or a shard_ranks that divides " + std::to_string(ranks));
}

// Ranks that compute passes together are the same number in each block of a ring.
void check_ring(const PipelineSpec& spec, Problems& problems, const Plan& plan) {
  const int64_t ranks = plan.cluster.sequence_parallel, ring = plan.cluster.ring;
  if (ranks % ring == 0) return;
  problems.push_back({.kind = "setting-unusable",
                      .where = spec.cluster.find("ring")->value.where,
                      .message = "a ring of " + std::to_string(ring) + " cannot be made of " + plural(ranks, "rank") +
                                 (ranks == 1 ? "" : " that compute passes together"),
                      .caret = {},
                      .notes = {},
                      .help = ranks == 1 ? "sequence_parallel = " + std::to_string(ring) + " in [cluster], or remove ring"
                                         : "a ring that divides sequence_parallel, which is " + std::to_string(ranks)});
}

void report_experts(const PipelineSpec& spec, Problems& problems, const std::string& message, const std::string& help) {
  const SourceSpan where = spec.cluster.find("expert_parallel")->value.where;
  problems.push_back({.kind = "setting-unusable", .where = where, .message = message, .caret = {}, .notes = {}, .help = help});
}

// Where ranks sample together, those that have columns are the first ones, and all have as many experts.
void check_experts_of_samplers(const PipelineSpec& spec, Problems& problems, const Plan& plan) {
  const int64_t passes = plan.cluster.sequence_parallel, experts = plan.cluster.expert_parallel;
  const int64_t sampling = plan.cluster.tensor_parallel;
  if (experts == 1 || passes % experts != 0 || experts % sampling == 0) return;
  const int64_t both = std::lcm(experts, sampling);
  report_experts(spec, problems,
                 "expert_parallel = " + std::to_string(experts) + " is no multiple of tensor_parallel, which is " +
                     std::to_string(sampling) + ": of those that sample together each has some experts",
                 (passes % both == 0 ? "expert_parallel = " + std::to_string(both) + ", or " : std::string()) +
                     "a tensor_parallel that divides " + std::to_string(experts));
}

// Where no role samples alone, the first ones of the ranks that compute passes together sample together, too.
void check_sampling_ranks(const PipelineSpec& spec, Problems& problems, const Plan& plan) {
  const int64_t passes = plan.cluster.sequence_parallel, sampling = plan.cluster.tensor_parallel;
  if (passes % sampling == 0) return check_experts_of_samplers(spec, problems, plan);
  problems.push_back({.kind = "setting-unusable",
                      .where = spec.cluster.find("tensor_parallel")->value.where,
                      .message = plural(sampling, "rank") + " cannot sample together where " + std::to_string(passes) +
                                 (passes == 1 ? " computes each pass" : " compute each pass together"),
                      .caret = {},
                      .notes = {},
                      .help = passes == 1
                                  ? "sequence_parallel = " + std::to_string(sampling) + " in [cluster], or remove tensor_parallel"
                                  : "a tensor_parallel that divides sequence_parallel, which is " + std::to_string(passes)});
}

// They are some of those that compute passes together, too.
void check_expert_ranks(const PipelineSpec& spec, Problems& problems, const Plan& plan) {
  const int64_t passes = plan.cluster.sequence_parallel, experts = plan.cluster.expert_parallel;
  if (experts == 1 || passes % experts == 0) return;
  report_experts(spec, problems,
                 plural(experts, "rank") + " cannot share out experts where " + std::to_string(passes) +
                     (passes == 1 ? " computes each pass" : " compute each pass together"),
                 passes == 1 ? "sequence_parallel = " + std::to_string(experts) + " in [cluster], or remove expert_parallel"
                             : "an expert_parallel that divides sequence_parallel, which is " + std::to_string(passes));
}

// In the order of the file; which of them trains is not known yet. False: with an error in their keys.
bool bind_roles(const PipelineSpec& spec, const Registry& registry, Problems& problems, Plan& plan) {
  int first = 0;
  bool right = true;
  for (const RoleSpec& role : spec.roles) {
    RoleSettings settings;
    right &= bind_table("cluster.roles." + role.name.text, role_params(), role.params, registry, problems, settings, plan);
    plan.roles.push_back({.name = role.name.text,
                          .where = role.name.where,
                          .first_rank = first,
                          .ranks = static_cast<int>(settings.ranks),
                          .tokens_in_flight = settings.tokens_in_flight.value_or(plan.budget.tokens_in_flight),
                          .elastic = settings.elastic});
    first += static_cast<int>(settings.ranks);
  }
  if (plan.ranks == 0) plan.ranks = std::max(first, 1);
  if (!plan.has_roles() || first == plan.ranks || !right) return right;
  problems.push_back(
      {.kind = "roles-without-ranks",
       .where = spec.roles.front().name.where,
       .message =
           "the roles of [cluster] have " + plural(first, "rank") + " together, and the run has " + std::to_string(plan.ranks),
       .caret = {},
       .notes = {},
       .help = "rlhf-run launch without --ranks starts " + std::to_string(first) + "; or change ranks in [cluster.roles.NAME]"});
  return true;
}

void bind_devices(const PipelineSpec& spec, const Registry& registry, Problems& problems, Plan& plan) {
  for (const DeviceSpec& device : spec.devices) {
    bind_table(device_table(device.name.text), device_params(), device.params, registry, problems,
               plan.device_settings[device.name.text], plan);
    if (!device_name(device.name.text) || registry.is_device(device.name.text)) continue;  // of the first is told
    std::vector<std::string> known;
    for (const std::string& name : registry.device_names()) known.push_back(sluice::quoted(name));
    problems.push_back({.kind = "device-unknown",
                        .where = device.name.where,
                        .message = sluice::quoted(device.name.text) + " is no device",
                        .caret = {},
                        .notes = {},
                        .help = join(known, " or ") + " with a number N; the memory of the host is memory_gib in [runtime]"});
  }
}

}  // namespace

std::string device_table(const std::string& device) { return "devices." + sluice::quoted(device); }

bool is_pipeline_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

RightSettings bind_settings(const PipelineSpec& spec, const Registry& registry, Problems& problems, Plan& plan) {
  RightSettings right;
  plan.pipeline.name = file_stem(spec);
  if (!report_missing_table(spec, spec.pipeline, problems, "pipeline", "\n          iterations = 100"))
    right.pipeline = bind_table("pipeline", pipeline_params(), spec.pipeline, registry, problems, plan.pipeline, plan);
  check_name(spec, problems, plan.pipeline.name);
  if (!report_missing_table(spec, spec.budget, problems, "budget",
                            "\n          tokens_in_flight = 16384\n          micro_batch_tokens = 2048"))
    right.budget = bind_table("budget", budget_params(), spec.budget, registry, problems, plan.budget, plan);
  right.schedule = bind_table("schedule", schedule_params(), spec.schedule, registry, problems, plan.schedule, plan);
  right.runtime = bind_table("runtime", runtime_params(), spec.runtime, registry, problems, plan.runtime, plan);
  bind_table("checkpoint", checkpoint_params(), spec.checkpoint, registry, problems, plan.checkpoint, plan);
  bind_table("log", log_params(), spec.log, registry, problems, plan.log, plan);
  const auto before = count_of_errors(problems);
  right.cluster_keys = bind_table("cluster", cluster_params(), spec.cluster, registry, problems, plan.cluster, plan);
  check_ring(spec, problems, plan);
  right.cluster_keys &= bind_roles(spec, registry, problems, plan);
  check_expert_ranks(spec, problems, plan);
  if (!plan.has_roles()) settle_slots(spec, problems, plan);
  right.cluster = count_of_errors(problems) == before;
  bind_devices(spec, registry, problems, plan);
  check_checkpoint_folder(spec.checkpoint, problems);
  return right;
}

void settle_slots(const PipelineSpec& spec, Problems& problems, Plan& plan) {
  if (!plan.has_roles()) check_sampling_ranks(spec, problems, plan);
  check_sharing(spec, problems, plan);
  if (!check_groups(spec, problems, plan)) return;
  if (plan.ranks > 1 && !plan.cluster.slots) take_slots_of_ranks(plan);
  check_slots(spec, problems, plan);
}

std::vector<EffectiveKey> effective_keys(const std::string& table_name, const ParamTable& params, const void* values,
                                         const Table& table, const PresetScope& preset) {
  std::vector<EffectiveKey> keys;
  for (const Param& param : params.params()) {
    keys.push_back({table_name,
                    param.info.name,
                    param.text(values),
                    origin_in(table, param.info.name, preset),
                    param.info.harmless,
                    {},
                    param.parts ? param.parts(values) : std::vector<ParamText>()});
  }
  return keys;
}

std::string origin_of(const SourceSpan& where) {
  if (!where.known()) return "default";
  if (where.line == 0 || where.source->typed) return where.source->name;
  return where.source->name + ":" + std::to_string(where.line);
}

int64_t resolved_cores(int64_t configured) { return configured > 0 ? configured : available_cores(); }

}  // namespace sluice::engine
