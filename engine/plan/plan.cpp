#include "engine/plan/plan.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "engine/plan/rank_groups.h"
#include "engine/plan/saturating.h"

namespace sluice::engine {

bool computes_in_passes(const NodeType& type, const NodeNeeds& needs) {
  return type.kind == NodeKind::kOrdinary &&
         std::ranges::any_of(needs.models, [](const ModelNeed& need) { return need.use != ModelUse::kPublishes; });
}

namespace {

template <class T>
const T* named(const std::vector<T>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &T::name);
  return found == all.end() ? nullptr : &*found;
}

bool uses(const PlanNode& node, const std::string& model) {
  return std::ranges::find(node.needs.models, model, &ModelNeed::model) != node.needs.models.end();
}

}  // namespace

SourceSpan PlanNode::place_of(const std::string& message) const {
  const SourceSpan place = place_named_in(message, files);
  return place.known() ? place : where;
}

const PlanRole* Plan::forward_role_of(const PlanNode& node) const {
  const auto found = std::ranges::find_if(forward_roles, [&](const PlanRole& role) { return role.has_executor(node.executor); });
  return found == forward_roles.end() ? nullptr : &*found;
}

// A source has no more of a model than its text.
const PlanRole* Plan::forward_role_of(const PlanModel& model) const {
  if (forward_roles.empty()) return nullptr;
  for (const PlanNode& node : nodes) {
    if (node.type->kind == NodeKind::kOrdinary && uses(node, model.name)) return forward_role_of(node);
  }
  return nullptr;
}

bool Plan::has(int rank, int node) const {
  switch (nodes[static_cast<size_t>(node)].type->kind) {
    case NodeKind::kRollout:
      return samples(rank);
    case NodeKind::kSource:
    case NodeKind::kOrdinary:
      return trains(rank);
  }
  return false;
}

bool Plan::computes(int rank, int node) const {
  const PlanRole* const role = forward_role_of(nodes[static_cast<size_t>(node)]);
  return role == nullptr ? has(rank, node) : role == role_of(rank);
}

namespace {

// Ranks that assist compute what the others do in passes, and sample with them.
bool uses_for(const Plan& plan, int rank, int node, const PlanModel& model) {
  if (!plan.assists(rank)) return plan.has(rank, node);
  const PlanNode& of = plan.nodes[static_cast<size_t>(node)];
  const bool samples = of.type->kind == NodeKind::kRollout;
  if (plan.has_roles() && samples != plan.assists_sampling(rank)) return false;
  if (samples) return plan.sampling_ranks() > 1 || plan.sampling_expert_ranks(model.facts) > 1;
  return computes_in_passes(*of.type, of.needs);
}

// Of a frozen model that a role computes with: its ranks have it, and those that ask them its text.
std::optional<ModelUsage> forward_usage(const Plan& plan, int rank, const PlanRole& role, ModelUsage usage) {
  const bool answers = plan.role_of(rank) == &role;
  if (!answers && !plan.trains(rank)) return std::nullopt;
  usage.forwarding = answers ? Forwarding::kAnswers : Forwarding::kAsks;
  usage.peers = forward_peers(plan, rank, role), usage.own_rank = rank;
  usage.sampling_ranks = usage.expert_ranks = 1;
  return usage;
}

}  // namespace

std::optional<ModelUsage> Plan::usage_on(int rank, const PlanModel& model) const {
  ModelUsage usage = model.usage;
  usage.sampling_ranks = sampling_ranks();
  usage.expert_ranks = sampling_expert_ranks(model.facts);
  usage.receivers = receivers();
  if (const PlanRole* const role = forward_role_of(model)) return forward_usage(*this, rank, *role, std::move(usage));
  if (forwards(rank)) return std::nullopt;
  if (!has_roles() && !assists(rank)) return usage;
  const bool is_trained = usage.updated, is_sampled = usage.versions.readable > 0;
  const auto is_used = [&](const PlanModel& used) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (uses_for(*this, rank, static_cast<int>(i), used) && uses(nodes[i], used.name)) return true;
    }
    return false;
  };
  const auto is_base_of_used = [&](const PlanModel& other) { return other.facts.base_of == model.name && is_used(other); };
  if (!is_used(model) && std::ranges::none_of(models, is_base_of_used)) return std::nullopt;
  if (!has_roles()) {
    if (place_in_group(*this, rank) >= usage.sampling_places()) usage.versions.readable = 0;
    return usage;
  }
  const bool trained_here = holds_trained(rank);
  usage.received = is_trained && is_sampled && !trained_here;
  usage.sent = is_trained && is_sampled && trains(rank);
  if (!trained_here) usage.updated = usage.read = false, usage.versions.saved = 0;
  if (trained_here) usage.versions.readable = 0, usage.sampling_ranks = 1;
  return usage;
}

const PlanModel* Plan::find_model(const std::string& name) const { return named(models, name); }

const PlanExecutor* Plan::find_executor(const std::string& name) const { return named(executors, name); }

const PlanModel& Plan::model(const std::string& name) const {
  const PlanModel* const found = find_model(name);
  SLUICE_CHECK(found != nullptr, "model " + name + " is not in the plan");
  return *found;
}

const PlanExecutor& Plan::executor(const std::string& name) const {
  const PlanExecutor* const found = find_executor(name);
  SLUICE_CHECK(found != nullptr, "executor " + name + " is not in the plan");
  return *found;
}

int Plan::threads_of(const PlanNode& node) const {
  const PlanExecutor* const found = find_executor(node.executor);
  return found == nullptr ? 1 : found->threads;
}

int Plan::index_of(const std::string& node) const {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const PlanNode& n) { return n.name == node; });
  return found == nodes.end() ? -1 : static_cast<int>(found - nodes.begin());
}

bool Plan::takes_on_demand(const PlanNode& node) const {
  return budget.admission == Admission::kOnDemand && node.type->kind == NodeKind::kRollout && node.needs.on_demand_tokens > 0;
}

int64_t PlanPath::version_for(int64_t iteration) const {
  if (!follows_versions) return 0;
  return measures() ? settings.version_for(iteration) : std::max<int64_t>(0, iteration - policy_lag);
}

const PlanPath& Plan::path_of(int node) const { return paths[static_cast<size_t>(nodes[static_cast<size_t>(node)].path)]; }

const PlanPath& Plan::main_path() const { return *std::ranges::find_if_not(paths, &PlanPath::measures); }

const PlanNode& Plan::maker_of(const PlanPath& path) const { return nodes[static_cast<size_t>(path.maker())]; }

bool Plan::is_inside_rollout(int node) const { return path_of(node).rollout && path_of(node).source == node; }

int64_t Plan::share_of(const PlanPath& path, int64_t tokens) const {
  if (path.settings.tokens_in_flight) return *path.settings.tokens_in_flight;
  for (const PlanPath& other : paths) tokens -= other.settings.tokens_in_flight.value_or(0);
  return std::max<int64_t>(0, tokens);
}

// Groups with credit on demand are handed on in order by whoever makes them, which those of several ranks would not be.
bool Plan::shares_making(const PlanPath& path, int64_t share) const {
  if (has_roles()) return path.rollout.has_value();
  if (ranks == 1 || !path.rollout || path.measures() || share >= path.capacity.iteration_tokens) return false;
  return !takes_on_demand(maker_of(path));
}

bool Plan::shares_making() const {
  return std::ranges::any_of(paths, [this](const PlanPath& path) { return shares_making(path); });
}

// With roles a rank that trains makes nothing, and has one budget.
int64_t Plan::token_capacity() const {
  int64_t tokens = 0;
  for (const PlanPath& path : paths) {
    for (int budgets = !has_roles() && shares_making(path) ? 2 : 1; budgets > 0; --budgets)
      tokens = saturating_sum(tokens, path.tokens_in_flight);
  }
  return tokens;
}

std::vector<TextCheck> Plan::text_checks(const PlanNode& writer) const {
  std::vector<TextCheck> checks;
  for (const PlanNode& node : nodes) {
    for (const TextCheck& check : node.needs.text_checks) {
      if (node.path != writer.path ||
          std::ranges::find(writer.needs.writes, check.column, &ColumnSpec::name) == writer.needs.writes.end())
        continue;
      checks.push_back(check);
      checks.back().node = node.name;
    }
  }
  return checks;
}

std::optional<PromptLimit> Plan::prompt_limit(const PlanNode& source) const {
  const std::optional<int> rollout = paths[static_cast<size_t>(source.path)].rollout;
  if (source.type->kind != NodeKind::kSource || !rollout) return std::nullopt;
  const PlanNode& node = nodes[static_cast<size_t>(*rollout)];
  std::optional<PromptLimit> limit = node.needs.prompt_limit;
  const auto sampled = std::ranges::find(node.needs.models, ModelUse::kSamples, &ModelNeed::use);
  if (!limit || sampled == node.needs.models.end()) return std::nullopt;
  const PlanModel* const model = find_model(sampled->model);
  if (model == nullptr || model->facts.folder.empty()) return std::nullopt;
  limit->node = node.name;
  limit->model = model->name;
  limit->folder = model->facts.folder;
  return limit;
}

std::vector<int> Plan::last_readers(const PlanColumn& column) const {
  std::vector<bool> leads_to_reader(nodes.size());  // a reader is after it
  std::vector<int> last;
  for (size_t i = nodes.size(); i-- > 0;) {
    const bool reads = std::find(column.readers.begin(), column.readers.end(), static_cast<int>(i)) != column.readers.end();
    if (reads && !leads_to_reader[i]) last.push_back(static_cast<int>(i));
    if (!reads && !leads_to_reader[i]) continue;
    for (const int input : nodes[i].inputs) leads_to_reader[static_cast<size_t>(input)] = true;
  }
  std::reverse(last.begin(), last.end());
  return last;
}

}  // namespace sluice::engine
