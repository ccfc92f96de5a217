#include <utility>

#include "base/text/strings.h"
#include "engine/check/worst_case.h"

// What to do about a run that would stall: which settings would be enough, each of them proven.
namespace sluice::engine::checking {
namespace {

/// What to say of a budget that is too small.
class Stall {
 public:
  Stall(Draft& draft, const Worst& worst, const CapacityShape& shape)
      : draft_(draft), worst_(worst), path_(*worst.path), shape_(shape) {}

  void report() {
    if (path_.proof.needed_by)
      report_at_barrier();
    else
      report_at_packer();
  }

 private:
  int64_t budget() const { return path_.tokens_in_flight; }
  int64_t needed() const { return path_.proof.tokens_needed; }
  const DraftNode& node(int position) const { return draft_.node(path_.members[static_cast<size_t>(position)]); }

  // The key that gives the path its tokens, and how many it needs there.
  SourceSpan where() const {
    if (source().source.tokens_in_flight) return place_of(source(), kTokensInFlight);
    return place_of_tokens(draft_, training_role(draft_));
  }
  std::string enough() const {
    const int64_t others = source().source.tokens_in_flight ? 0 : draft_.plan.training_tokens() - budget();
    const PlanRole* const role = training_role(draft_);
    const bool is_of_role = role != nullptr && !source().source.tokens_in_flight && own_tokens(draft_, *role) != nullptr;
    return std::string(kTokensInFlight) + " >= " + std::to_string(needed() + others) +
           (is_of_role ? " in [cluster.roles." + role->name + "]" : "");
  }
  std::string tokens() const {
    const std::string text = std::to_string(budget()) + " tokens in flight";
    return draft_.paths.size() == 1 ? text : text + " of source '" + source().name() + "'";
  }
  const DraftNode& source() const { return draft_.node(path_.source); }

  void report_at_packer() {
    const bool smaller_batches = budget() >= shape_.worst_group;
    draft_.error("budget-stalls", where(), tokens() + " cannot fill one micro-batch: the run would stall",
                 "a micro-batch is handed on when it holds " + std::to_string(needed()) + " tokens at worst",
                 enough() + (smaller_batches ? ", or micro_batch_tokens <= " + std::to_string(budget()) : std::string()));
  }

  void report_at_barrier() {
    const DraftNode& barrier = node(*path_.proof.needed_by);
    const bool behind = path_.refill && draft_.before(*path_.refill, path_.members[static_cast<size_t>(*path_.proof.needed_by)]);
    const std::string reason = barrier.needs->scope_reason.empty() ? "" : " (" + barrier.needs->scope_reason + ")";
    const int64_t groups = behind ? worst_.groups : path_.proof.drawn_groups;
    const int64_t collected = saturating_product(groups, shape_.worst_group);
    std::string caret = "'" + barrier.name() + "'" + reason + " must collect " + plural(groups, "group") + of_a_rank() +
                        ", at worst " + std::to_string(groups) + " x " + worst_.group_text() + " = " + std::to_string(collected) +
                        " tokens";
    if (needed() > collected)
      caret += ", while " + std::to_string(needed() - collected) + " tokens of groups to choose from are drawn";
    std::vector<std::string> notes = drawn_notes(behind);
    for (std::string& note : preset_notes(draft_, barrier)) notes.push_back(std::move(note));
    draft_.error("budget-stalls", where(), tokens() + " cannot hold one iteration: the run would stall", std::move(caret),
                 enough() + without_barriers() + behind_filter(behind) + fewer_groups(), std::move(notes));
  }

  std::vector<std::string> drawn_notes(bool behind) const {
    if (behind || !path_.refill) return {};
    return {"filter '" + draft_.node(*path_.refill).name() + "' has dropped groups replaced: up to " +
            std::to_string(shape_.most_draws) + " x " + std::to_string(worst_.groups) + " groups are drawn in an iteration" +
            of_a_rank()};
  }

  const char* of_a_rank() const { return draft_.plan.owners() > 1 ? " for a rank" : ""; }

  std::string behind_filter(bool behind) const {
    if (behind || !path_.refill) return {};
    CapacityShape moved = shape_;
    moved.nodes[static_cast<size_t>(*path_.proof.needed_by)].barrier = false;
    moved.nodes.push_back({.inputs = {*moved.refill}, .reads = true, .barrier = true});
    if (prove(moved).tokens_needed > budget()) return {};
    return ", or '" + node(*path_.proof.needed_by).name() + "' after '" + draft_.node(*path_.refill).name() + "'";
  }

  // Settings under which no barrier is left that needs more than the budget.
  std::string without_barriers() const {
    CapacityShape open = shape_;
    std::vector<const DraftNode*> barriers;
    for (size_t i = 0; i < open.nodes.size(); ++i) {
      if (!open.nodes[i].barrier || !path_.proof.holds[i]) continue;
      barriers.push_back(&node(static_cast<int>(i)));
      open.nodes[i].barrier = false;
    }
    if (prove(open).tokens_needed > budget()) return {};
    std::vector<std::string> settings;
    for (const DraftNode* barrier : barriers) {
      std::string setting = setting_without_barrier(draft_, *barrier);
      if (setting.empty()) return {};
      settings.push_back(barriers.size() == 1 ? setting : setting + " in '" + barrier->name() + "'");
    }
    return ", or " + join(settings, " and ");
  }

  // The most groups for which the budget is enough.
  std::string fewer_groups() const {
    int64_t enough = 0, too_many = shape_.groups;
    while (enough + 1 < too_many) {
      CapacityShape fewer = shape_;
      fewer.groups = enough + (too_many - enough) / 2;
      (prove(fewer).tokens_needed <= budget() ? enough : too_many) = fewer.groups;
    }
    return enough == 0 ? std::string() : ", or groups_per_iteration <= " + std::to_string(enough * draft_.plan.owners());
  }

  Draft& draft_;
  const Worst& worst_;
  const DraftPath& path_;
  const CapacityShape& shape_;
};

}  // namespace

void report_stall(Draft& draft, const Worst& worst, const CapacityShape& shape) { Stall(draft, worst, shape).report(); }

std::string setting_without_barrier(const Draft& draft, const DraftNode& node) {
  const std::string key(trim(node.needs->scope_reason.substr(0, node.needs->scope_reason.find_first_of(" =<>"))));
  const Param* param = node.type->params.find(key);
  if (param == nullptr) return {};
  std::vector<Value> candidates;
  for (const std::string& choice : param->info.choices) candidates.push_back({choice, {}, {}});
  if (param->info.kind == ParamKind::kBoolean) candidates = {{false, {}, {}}, {true, {}, {}}};
  if (param->info.kind == ParamKind::kInteger) candidates = {{static_cast<int64_t>(param->info.minimum.value_or(1)), {}, {}}};
  for (Value& candidate : candidates) {  // each is bound and the contract asked
    Table table = node.spec->params;
    std::erase_if(table.entries, [&](const Entry& entry) { return entry.key == key; });
    const std::string text = key + " = " + toml_text(candidate);
    table.entries.push_back({key, {}, std::move(candidate)});
    Problems problems;
    BindContext context{draft.registry, problems, {}, preset_scope(draft, node)};
    const auto params = node.type->bind(table, context);
    if (problems.empty() && params != nullptr && node.type->needs(params.get()).scope == Scope::kMicroBatch) return text;
  }
  return {};
}

}  // namespace sluice::engine::checking
