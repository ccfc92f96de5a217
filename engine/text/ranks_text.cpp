#include "engine/text/ranks_text.h"

#include <algorithm>
#include <vector>

#include "base/text/strings.h"
#include "engine/memory/role_traffic.h"
#include "engine/plan/cluster_work.h"

namespace sluice::engine {
namespace {

constexpr size_t kIndent = 15;

std::string rollout_of(const Plan& plan, const PlanPath& path) {
  return "'" + plan.nodes[static_cast<size_t>(*path.rollout)].name + "'";
}

// Lines below each other, the first after a word.
std::string block(const std::string& word, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += padded(text.empty() ? "  " + word : "", kIndent) + line + "\n";
  return text;
}

// "2 slots each; a slot has up to 16 groups of an iteration, in up to 4 micro-batches"
std::string slots_text(const ClusterWork& work) {
  return plural(work.slots, "slot") + " each; a slot has up to " + plural(work.groups, "group") + " of an iteration, in up to " +
         std::to_string(work.micro_batches) + (work.micro_batches == 1 ? " micro-batch" : " micro-batches");
}

// For each path whose groups ranks make for each other.
std::vector<std::string> making_texts(const Plan& plan) {
  std::vector<std::string> texts;
  for (const PlanPath& path : plan.paths) {
    if (!plan.shares_making(path)) continue;
    texts.push_back("ranks make groups of " + rollout_of(plan, path) + " for each other: each has " +
                    std::to_string(path.tokens_in_flight) +
                    " tokens in flight for what it makes, and as many for what it trains");
  }
  return texts;
}

// Of ranks that have weights in common.
std::string common_text(const Plan& plan) {
  if (plan.shard_groups() > 1) {
    return "each " + plural(plan.shard_ranks(), "rank") +
           " that train have weights and gradients once, on one host: " + std::to_string(plan.shard_groups()) +
           " groups; the optimizers are once in all, a part each";
  }
  return "those that train have weights, gradients and optimizers once, on one host" +
         std::string(plan.training_ranks() > 1 ? ", a part each" : "");
}

std::string range_text(int first, int count) {
  return count == 1 ? std::to_string(first) : std::to_string(first) + "-" + std::to_string(first + count - 1);
}

// Ranks next to each other: who leads and who assists them.
struct Assisting {
  int first_leader = 0, leaders = 0;
  int first = 0, count = 0;
};

Assisting assisting_passes(const Plan& plan) {
  const int leaders = plan.owners(), count = plan.training_ranks() - leaders;
  return {0, leaders, plan.ranks - plan.forward_ranks() - count, count};
}

Assisting assisting_sampling(const Plan& plan) {
  return {plan.owners(), plan.samplers(), plan.scheduling_ranks(), plan.sampling_role().ranks - plan.samplers()};
}

// "ranks 2-3 assist ranks 0-1: "
std::string text_of(const Assisting& of) {
  return (of.count == 1 ? "rank " : "ranks ") + range_text(of.first, of.count) + (of.count == 1 ? " assists " : " assist ") +
         (of.leaders == 1 ? "rank " : "ranks ") + range_text(of.first_leader, of.leaders) + ": ";
}

// "ranks 2-3 assist ranks 0-1: 2 of them compute each pass together"
std::vector<std::string> assisting_texts(const Plan& plan) {
  std::vector<std::string> texts;
  const std::string sample = std::to_string(plan.sampling_ranks()) + " sample together";
  if (plan.pass_ranks() > 1) {
    texts.push_back(
        text_of(assisting_passes(plan)) + std::to_string(plan.pass_ranks()) + " of them compute each pass together" +
        (plan.ring() > 1 ? ", in a ring of " + std::to_string(plan.ring()) : "") +
        (!plan.has_roles() && plan.sampling_ranks() > 1 ? ", and " + sample : "") +
        (plan.expert_ranks() > 1 ? "; " + std::to_string(plan.expert_ranks()) + " share out the experts of a mixture" : ""));
  }
  if (plan.has_roles() && plan.sampling_ranks() > 1)
    texts.push_back(text_of(assisting_sampling(plan)) + std::to_string(plan.sampling_ranks()) + " of them sample together");
  return texts;
}

std::string lines_without_roles(const Plan& plan) {
  if (plan.slots() == 1 && plan.ranks == 1) return {};
  const ClusterWork work = cluster_work(plan);
  std::vector<std::string> lines{plural(plan.owners(), "rank") + " with " + slots_text(work)};
  for (std::string& text : assisting_texts(plan)) lines.push_back(std::move(text));
  for (std::string& text : making_texts(plan)) lines.push_back(std::move(text));
  if (plan.shards_parameters()) lines.push_back(common_text(plan));
  if (plan.ranks > 1 && work.gradient_bytes > 0)
    lines.push_back("each sends " + human_bytes(work.gradient_bytes) + " of gradients an iteration; what follows is of each");
  return block("ranks", lines);
}

// "room for 93 groups of 'generate' and 12 of 'held_out_answers' at worst"
std::string room_text(const Plan& plan) {
  std::vector<std::string> texts;
  for (const PlanPath& path : plan.paths) {
    if (!path.rollout) continue;
    const int64_t groups = groups_at_once(plan, path);
    texts.push_back((texts.empty() ? plural(groups, "group") : std::to_string(groups)) + " of " + rollout_of(plan, path));
  }
  return "room for " + join(texts, " and ") + " at worst";
}

// "passes of 'reference' and 'reward' for ranks 0-1"
std::string forward_text(const Plan& plan, const PlanRole& role) {
  std::vector<std::string> nodes;
  for (const PlanNode& node : plan.nodes)
    if (role.has_executor(node.executor)) nodes.push_back("'" + node.name + "'");
  return "passes of " + join(nodes, " and ") + " for " + (plan.owners() == 1 ? "rank " : "ranks ") + range_text(0, plan.owners());
}

std::string role_text(const Plan& plan, const PlanRole& role) {
  if (plan.forwards(role.first_rank)) return forward_text(plan, role);
  return std::to_string(role.tokens_in_flight) + " tokens in flight" + (role.ranks == 1 ? "" : " each") + "; " +
         (plan.trains(role.first_rank) ? slots_text(cluster_work(plan)) : room_text(plan)) + (role.elastic ? "; elastic" : "");
}

std::string roles_block(const Plan& plan) {
  const std::vector<const PlanRole*> roles = plan.all_roles();
  size_t width = 0, numbers = 0;
  for (const PlanRole* const role : roles) {
    width = std::max(width, role->name.size());
    numbers = std::max(numbers, rank_numbers(plan, *role).size());
  }
  std::vector<std::string> lines;
  for (const PlanRole* const role : roles) {
    lines.push_back(padded(role->name, width) + "  " + padded(role->ranks == 1 ? "rank" : "ranks", 5) + " " +
                    padded(rank_numbers(plan, *role), numbers) + "  " + role_text(plan, *role));
  }
  for (std::string& text : assisting_texts(plan)) lines.push_back(std::move(text));
  if (!plan.has_roles()) {
    for (std::string& text : making_texts(plan)) lines.push_back(std::move(text));
  }
  return block("roles", lines);
}

// What goes from role to role in an iteration, and among the ranks that train.
std::string network_block(const Plan& plan) {
  const std::string& trains = plan.role_of(0)->name;
  const std::string samples = plan.has_roles() ? plan.sampling_role().name : std::string();
  const RoleTraffic traffic = role_traffic(plan);
  std::vector<std::string> lines;
  for (const RoleTraffic::Version& version : traffic.versions)
    lines.push_back("weights of " + version.model + ": " + human_bytes(version.bytes) + " a version to each rank of " + samples);
  for (const RoleTraffic::Groups& of_path : traffic.groups) {
    const PlanPath& path = plan.paths[static_cast<size_t>(of_path.path)];
    lines.push_back("groups of " + rollout_of(plan, path) + ": up to " + human_bytes(of_path.column_bytes) + " an iteration" +
                    (path.measures() ? " that measures" : "") + " from " + samples + " to " + trains + ", and " +
                    human_bytes(of_path.prompt_bytes) + " of prompts the other way");
  }
  for (const RoleTraffic::Passes& of_node : traffic.passes) {
    const PlanNode& node = plan.nodes[static_cast<size_t>(of_node.node)];
    const std::string& computes = plan.forward_role_of(node)->name;
    lines.push_back("passes of '" + node.name + "': up to " + human_bytes(of_node.asked_bytes) + " an iteration" +
                    (plan.path_of(of_node.node).measures() ? " that measures" : "") + " from " + trains + " to " + computes +
                    ", and " + human_bytes(of_node.answer_bytes) + " back");
  }
  const int64_t gradients = plan.owners() == 1 ? 0 : cluster_work(plan).gradient_bytes;
  if (plan.shards_parameters()) lines.push_back(common_text(plan));
  if (gradients > 0) lines.push_back("gradients: " + human_bytes(gradients) + " an iteration from each rank of " + trains);
  return block("network", lines);
}

}  // namespace

std::string rank_numbers(const Plan& plan, const PlanRole& role) {
  if (!plan.trains(role.first_rank)) return range_text(role.first_rank, role.ranks);
  const Assisting assisting = assisting_passes(plan);
  const std::string numbers = range_text(role.first_rank, plan.owners());
  return assisting.count == 0 ? numbers : numbers + " and " + range_text(assisting.first, assisting.count);
}

std::string place_text(const Plan& plan, const PlanNode& node) {
  const auto index = static_cast<int>(&node - plan.nodes.data());
  return plan.has_roles() && plan.is_inside_rollout(index) ? "every rank" : node.executor;
}

bool is_remote(const Plan& plan, const PlanEdge& edge) {
  const auto computes_elsewhere = [&](int node) {
    return plan.forward_role_of(plan.nodes[static_cast<size_t>(node)]) != nullptr;
  };
  if (computes_elsewhere(edge.from) != computes_elsewhere(edge.to)) return true;
  return plan.has_roles() && (plan.is_inside_rollout(edge.from) || plan.path_of(edge.from).rollout == edge.from);
}

int64_t groups_at_once(const Plan& plan, const PlanPath& path) {
  return plan.making_tokens(path) / std::max<int64_t>(1, path.capacity.group_tokens);
}

std::string ranks_lines(const Plan& plan) {
  return plan.all_roles().empty() ? lines_without_roles(plan) : roles_block(plan) + network_block(plan);
}

}  // namespace sluice::engine
