#include "engine/text/plan_text.h"

#include <algorithm>

#include "base/text/strings.h"
#include "engine/checkpoint/checkpoint_room.h"
#include "engine/memory/memory_needs.h"
#include "engine/text/ranks_text.h"

namespace sluice::engine {
namespace {

using Row = std::vector<std::string>;

// Wraps at ", " so that no line is wider than `width` where it can be helped.
std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> lines{""};
  for (const std::string& word : split(text, ' ')) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

std::string names_of(const Plan& plan, const std::vector<int>& columns) {
  std::vector<std::string> names;
  for (const int column : columns) names.push_back(plan.columns[static_cast<size_t>(column)].spec.name);
  return join(names, ", ");
}

// "updates actor, critic; averages teacher"
std::string effects(const PlanNode& node) {
  std::vector<std::string> parts;
  for (const ModelUse use : {ModelUse::kUpdates, ModelUse::kAverages, ModelUse::kPublishes}) {
    std::vector<std::string> models;
    for (const ModelNeed& need : node.needs.models) {
      const bool told = std::find(models.begin(), models.end(), need.model) != models.end();  // an actor that is the critic too
      if (need.use == use && !told) models.push_back(need.model);
    }
    if (!models.empty()) parts.push_back(std::string(name_of(use)) + " " + join(models, ", "));
  }
  return join(parts, "; ");
}

std::string traffic(const Plan& plan, const PlanNode& node) {
  const std::string done = effects(node);
  if (node.writes.empty() && !done.empty()) return done;
  const std::string reads = names_of(plan, node.reads), writes = names_of(plan, node.writes);
  const std::string arrow = reads.empty() ? "-> " : writes.empty() ? " ->" : " -> ";
  return reads + arrow + writes + (done.empty() ? "" : "; " + done);
}

// "barrier; joins score, reference; frees score"
std::string remarks(const Plan& plan, const PlanNode& node) {
  std::vector<std::string> parts;
  if (node.is_barrier()) parts.push_back("barrier");
  if (node.needs.drops_groups) parts.push_back("filter");
  if (node.joins()) {
    std::vector<std::string> inputs;
    for (const int input : node.inputs) inputs.push_back(plan.nodes[static_cast<size_t>(input)].name);
    parts.push_back("joins " + join(inputs, ", "));
  }
  const std::string freed = names_of(plan, node.frees);
  if (!freed.empty()) parts.push_back("frees " + freed);
  return join(parts, "; ");
}

std::string line_of(const Row& row, const std::vector<size_t>& widths) {
  std::string line = "  " + padded(row[0], widths[0]) + "  " + padded(row[1], widths[1]) + "  " + padded(row[2], widths[2]) +
                     "  " + padded(row[3], widths[3]) + "  " + padded_before(row[4], widths[4]) + "  " + row[5];
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string table_text(const Plan& plan) {
  constexpr size_t kTraffic = 3, kWidestTraffic = 56;
  std::vector<Row> rows{{"node", "type", "on", "reads -> writes", "worst tokens", ""}};
  for (const PlanNode& node : plan.nodes) {
    const auto lines = wrapped(traffic(plan, node), kWidestTraffic);
    rows.push_back({node.name, node.type->info.type, place_text(plan, node), lines[0], std::to_string(node.worst_tokens),
                    remarks(plan, node)});
    for (size_t l = 1; l < lines.size(); ++l) rows.push_back({"", "", "", "  " + lines[l], "", ""});
  }
  std::vector<size_t> widths(6);
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  widths[kTraffic] = std::max<size_t>(widths[kTraffic], 44);
  std::string text;
  for (const Row& row : rows) text += line_of(row, widths);
  return text;
}

// "128 prompts x 4 samples, at most 14 tokens a sample"
std::string groups_text(const Plan& plan, const PlanPath& path) {
  const NodeNeeds& source = plan.nodes[static_cast<size_t>(path.source)].needs;
  const NodeNeeds& maker = plan.maker_of(path).needs;
  return plural(source.groups_per_iteration, path.rollout ? "prompt" : "group") + " x " +
         plural(maker.samples_per_group, "sample") + ", at most " + std::to_string(maker.worst_sample_tokens) +
         " tokens a sample";
}

std::string heading(const Plan& plan) {
  const PlanPath& path = plan.main_path();
  std::string text = plan.pipeline.name + ": " + plural(plan.pipeline.iterations, "iteration") + " of " + groups_text(plan, path);
  if (plan.pipeline.preset) text += "; preset " + *plan.pipeline.preset;
  if (path.follows_versions) text += "; policy lag " + std::to_string(path.policy_lag);
  if (path.policy_lag > 0 && plan.schedule.update == WeightUpdate::kImmediately)
    text += " at most, newer weights at each token: not the same in every run";
  return text;
}

// When a path that measures does so: "before training, after every 20 iterations and after the last". The first iteration
// measures once, so before training is instead of after it.
std::string due_text(const SourceSettings& settings, int64_t iterations) {
  if (settings.before_training && iterations == 1) return "before training";
  std::string text = settings.before_training ? "before training, " : "";
  if (settings.every_iterations == 1) return text + "after every iteration" + (text.empty() ? "" : " but the first");
  if (settings.every_iterations) text += "after every " + std::to_string(*settings.every_iterations) + " iterations, ";
  text.replace(text.size() - 2, 2, " and ");
  return text + "after the last";
}

// A line for each path but the main one.
std::string path_lines(const Plan& plan) {
  std::string text;
  for (const PlanPath& path : plan.paths) {
    if (&path == &plan.main_path()) continue;
    const std::string& source = plan.nodes[static_cast<size_t>(path.source)].name;
    text += padded(text.empty() ? "  paths" : "", 15) + source + ": " + groups_text(plan, path) +
            (path.measures() ? "; measured " + due_text(path.settings, plan.pipeline.iterations) : "") + "\n";
  }
  return text;
}

// "weights 6.3 MB   gradients 2.5 MB   peak 8.8 MB of 25.3 GB"
std::string classes_text(const PlanMemory& memory) {
  std::string text = "weights " + human_bytes(memory.weights_bytes);
  const auto add = [&](const std::string& what, int64_t bytes) {
    if (bytes > 0) text += "   " + what + " " + human_bytes(bytes);
  };
  add("gradients", memory.gradient_bytes);
  add("optimizer", memory.optimizer_bytes);
  add("checkpoint copy", memory.copy_bytes);
  add("KV", memory.kv_bytes);
  add("columns", memory.column_bytes);
  add("activations", memory.activation_bytes);
  add("slack", memory.slack_bytes);
  text += "   peak " + human_bytes(memory.total_bytes());
  if (memory.machine_bytes > 0) text += " of " + human_bytes(memory.machine_bytes);
  return text;
}

// With roles a line for a rank of each; and one for each device.
std::string memory_lines(const Plan& plan) {
  const std::vector<MemoryNeed> needs = memory_needs(plan);
  const auto place_of = [&](const MemoryNeed& need) -> std::string {
    if (need.role.empty()) return !need.is_host() ? need.place : needs.size() > 1 ? "host" : "";
    return need.is_host() ? need.role : need.role + ", " + need.place;
  };
  size_t width = 0;
  for (const MemoryNeed& need : needs) width = std::max(width, place_of(need).size() + (place_of(need).empty() ? 0 : 2));
  std::string text;
  for (const MemoryNeed& need : needs)
    text += padded(text.empty() ? "  memory" : "", 15) + padded(place_of(need), width) + classes_text(need.memory) + "\n";
  return text;
}

std::string micro_batch_line(const Plan& plan) {
  if (!plan.budget.micro_batch_tokens.automatic) return {};
  return "  micro-batch  " + std::to_string(plan.budget.micro_batch_tokens.value) +
         " tokens, chosen by the memory that is left\n";
}

// What the models compute at once of a micro-batch.
std::string pass_line(const Plan& plan) {
  const auto computes = [](const PlanNode& node) { return computes_in_passes(*node.type, node.needs); };
  if (std::ranges::none_of(plan.nodes, computes)) return {};
  const int64_t pass = plan.budget.pass_tokens.value, batch = plan.main_path().capacity.micro_batch_tokens;
  if (pass >= batch) return "  passes       a micro-batch of up to " + std::to_string(batch) + " tokens is computed at once\n";
  return "  passes       a micro-batch of up to " + std::to_string(batch) + " tokens is computed in passes of at most " +
         std::to_string(pass) + "\n";
}

// Whose backward computes again what there is no memory to keep.
std::string recompute_line(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanModel& model : plan.models) {
    if (model.usage.recompute) names.push_back(model.name);
  }
  if (names.empty()) return {};
  return "               the backward of " + join(names, ", ") +
         " computes each layer again: too little memory would be left beside what it keeps\n";
}

// What a checkpoint is written from, and why.
std::string copy_line(const Plan& plan) {
  if (snapshot_bytes(plan) == 0) return {};
  const bool written = plan.checkpoint.copy.has_value();
  const char* how = plan.checkpoint_copy == CheckpointCopy::kMemory
                        ? (written ? "while training goes on, from a copy in memory, as [checkpoint] copy says"
                                   : "while training goes on, from a copy in memory, which has room for it")
                        : (written ? "while training waits, without a copy in memory, as [checkpoint] copy says"
                                   : "while training waits: beside a copy too little memory would be left");
  return std::string("               written ") + how + "\n";
}

std::string checkpoints_line(const Plan& plan) {
  const CheckpointRoom room = checkpoint_room(plan);
  if (room.bytes == 0) return {};
  std::string line = "  checkpoints  " + human_bytes(room.bytes) + " each";
  if (room.at_a_time > 1) {
    line += "   at most " + std::to_string(room.at_a_time) + " at a time   " + human_bytes(room.total_bytes()) + " of disk";
  }
  return line + "\n" + copy_line(plan);
}

// A line for each model whose learning rate changes over the run.
std::string learning_rate_lines(const Plan& plan) {
  std::string text;
  for (const PlanModel& model : plan.models) {
    const std::optional<ValueSchedule>& rate = model.facts.learning_rate;
    if (!model.usage.updated || !rate || !rate->changes()) continue;
    text += padded(text.empty() ? "  learning" : "", 15) + model.name + " " + rate->text() + "\n";
  }
  return text;
}

// A line for each group of weights that an optimizer treats otherwise than the rest.
std::string group_lines(const Plan& plan) {
  std::string text;
  for (const PlanModel& model : plan.models) {
    if (!model.usage.updated) continue;
    for (const WeightGroup& group : model.facts.groups) {
      text += padded(text.empty() ? "  groups" : "", 15) + model.name + " " + group.text + ": " +
              plural(group.parameters, "parameter") + "\n";
    }
  }
  return text;
}

// A line for each number of a node that is scheduled.
std::string schedule_lines(const Plan& plan) {
  std::string text;
  for (const PlanNode& node : plan.nodes) {
    for (const NamedSchedule& schedule : node.needs.schedules) {
      if (!schedule.number.changes()) continue;
      text +=
          padded(text.empty() ? "  scheduled" : "", 15) + node.name + "." + schedule.key + " " + schedule.number.text() + "\n";
    }
  }
  return text;
}

// The first barrier at or before a node; null: none.
const PlanNode* barrier_before(const Plan& plan, int index) {
  std::vector<int> open{index};
  std::vector<bool> seen(plan.nodes.size());
  int first = -1;
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    if (seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = true;
    const PlanNode& node = plan.nodes[static_cast<size_t>(at)];
    if (node.needs.scope == Scope::kIteration && (first < 0 || at < first)) first = at;
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return first < 0 ? nullptr : &plan.nodes[static_cast<size_t>(first)];
}

std::string start_of_training(const Plan& plan, int trainer) {
  const std::string& name = plan.nodes[static_cast<size_t>(trainer)].name;
  const PlanNode* barrier = barrier_before(plan, trainer);
  if (barrier == nullptr) {
    return name + " starts after the first micro-batch (" + std::to_string(plan.path_of(trainer).capacity.micro_batch_tokens) +
           " tokens)";
  }
  const std::string reason = barrier->needs.scope_reason.empty() ? "" : " (" + barrier->needs.scope_reason + ")";
  return name + " starts when the iteration is complete: " + barrier->name + " collects it" + reason;
}

std::string copies_text(const Plan& plan) {
  for (const PlanModel& model : plan.models) {
    if (!model.usage.updated || model.usage.versions.readable == 0) continue;
    if (model.usage.versions.readable == 1) return "; one published copy of " + model.name + " is enough at lag 0";
    return "; " + std::to_string(model.usage.versions.readable) + " published copies of " + model.name +
           " beside the one in training";
  }
  return {};
}

std::string overlap_line(const Plan& plan) {
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const auto& needs = plan.nodes[i].needs.models;
    const bool trains =
        std::any_of(needs.begin(), needs.end(), [](const ModelNeed& need) { return need.use == ModelUse::kUpdates; });
    if (!trains) continue;
    std::string text = "  overlap      " + start_of_training(plan, static_cast<int>(i)) + copies_text(plan) + "\n";
    const int64_t lag = plan.schedule.policy_lag;
    if (lag > 0) {
      text += "               while one iteration is trained, " +
              (lag == 1 ? "the next one is" : "up to " + std::to_string(lag) + " later ones are") + " sampled\n";
    }
    return text;
  }
  return {};
}

std::string executors_line(const Plan& plan) {
  std::vector<std::string> parts;
  for (const PlanExecutor& executor : plan.executors)
    parts.push_back(executor.name + " with " + plural(executor.threads, "core"));
  return "  executors    " + join(parts, ", ") + "\n";
}

std::string stall_lines(const Plan& plan) {
  std::string text;
  for (const PlanPath& path : plan.paths) {
    text += (text.empty() ? "  no deadlock: " : "               ") + std::to_string(path.capacity.tokens_needed) + " of " +
            std::to_string(path.tokens_in_flight) + " tokens are needed at worst (" + path.capacity.needed_by + ")\n";
  }
  return text;
}

}  // namespace

std::string plan_text(const Plan& plan) {
  return heading(plan) + "\n\n" + table_text(plan) + "\n" + path_lines(plan) + ranks_lines(plan) + executors_line(plan) +
         memory_lines(plan) + checkpoints_line(plan) + micro_batch_line(plan) + pass_line(plan) + recompute_line(plan) +
         learning_rate_lines(plan) + group_lines(plan) + schedule_lines(plan) + overlap_line(plan) + stall_lines(plan);
}

}  // namespace sluice::engine
