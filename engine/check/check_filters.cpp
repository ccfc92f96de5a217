#include <algorithm>
#include <cmath>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"

// A filter thins micro-batches: what is after it sees other micro-batches than what is beside it. One filter may ask for more
// groups in place of those that it dropped; an iteration then ends only when it has judged every group.
namespace sluice::engine::checking {
namespace {

bool is_filter(const DraftNode& node) { return node.bound && node.needs->drops_groups; }
bool refills(const DraftNode& node) { return is_filter(node) && node.needs->most_draws > 1; }

std::string reason_text(const DraftNode& node) {
  return node.needs->scope_reason.empty() ? std::string() : " (" + node.needs->scope_reason + ")";
}

// What only a mistake in a contract can bring about.
void check_contract(Draft& draft, const DraftNode& node) {
  const NodeNeeds& needs = *node.needs;
  const std::string type = "type " + sluice::quoted(node.type->info.type);
  if (!needs.drops_groups) {
    if (needs.most_draws == 1 && needs.oversample == 1) return;
    draft.error("filter-contract", place_of(node, needs.most_draws != 1 ? "most_draws" : "oversample"),
                "'" + node.name() + "' asks for more groups in place of dropped ones, but drops none", {},
                "the contract of " + type + " must say that it drops groups, or leave most_draws and oversample at 1");
  } else if (node.type->kind != NodeKind::kOrdinary) {
    draft.error("filter-contract", place_of(node), "'" + node.name() + "' makes groups and cannot drop them", {},
                "the contract of " + type + " must not say that it drops groups");
  } else if (needs.most_draws < 1 || !(needs.oversample >= 1) || !std::isfinite(needs.oversample)) {
    draft.error("filter-contract", place_of(node, needs.most_draws < 1 ? "most_draws" : "oversample"),
                "filter '" + node.name() + "' must draw what it drops at least once", {}, "most_draws >= 1 and oversample >= 1");
  }
}

void check_scope(Draft& draft, const DraftNode& node) {
  if (!is_filter(node) || node.needs->scope != Scope::kIteration) return;
  const std::string without = setting_without_barrier(draft, node);
  draft.error("filter-contract", place_of(node),
              "filter '" + node.name() + "' cannot wait for the whole iteration" + reason_text(node),
              "it judges each micro-batch as it comes", without);
}

void find_refill(Draft& draft) {
  for (const int index : draft.order) {
    const DraftNode& node = draft.node(index);
    DraftPath* const path = draft.path_of(node);
    if (!refills(node) || path == nullptr) continue;
    if (!path->refill) {
      path->refill = index;
      continue;
    }
    draft.error("filter-twice", place_of(node, "most_draws"),
                "'" + node.name() + "' and '" + draft.node(*path->refill).name() + "' both have dropped groups replaced",
                "an iteration has one number of groups to reach", "most_draws = 1 in one of the two");
  }
}

// A barrier hands nothing on before the iteration ends; the iteration does not end before the filter has judged all groups.
void check_waits(Draft& draft, const DraftPath& path) {
  if (!path.refill) return;
  const DraftNode& filter = draft.node(*path.refill);
  for (const int index : path.members) {
    const DraftNode& node = draft.node(index);
    if (!node.bound || node.needs->scope != Scope::kIteration || !draft.before(index, *path.refill)) continue;
    std::string help = setting_without_barrier(draft, node);
    if (!help.empty()) help += " in [nodes." + node.name() + "], or ";
    draft.error("filter-deadlock", place_of(filter, "most_draws"),
                "'" + filter.name() + "' and '" + node.name() + "'" + reason_text(node) + " would wait for each other for ever",
                "'" + node.name() + "' hands nothing on before the iteration ends, which ends when '" + filter.name() +
                    "' has judged all its groups",
                help + "most_draws = 1, or put '" + node.name() + "' after '" + filter.name() + "'");
  }
}

int stream_behind(const Draft& draft, int index) { return is_filter(draft.node(index)) ? index : draft.node(index).stream; }

std::string hands_on(const Draft& draft, int index) {
  const int stream = stream_behind(draft, index);
  return "'" + draft.node(index).name() + "' hands on " +
         (stream < 0        ? "all groups"
          : stream == index ? "what it keeps"
                            : "what '" + draft.node(stream).name() + "' keeps");
}

void report_mixed(Draft& draft, const DraftNode& node, int first, int other) {
  const int kept = stream_behind(draft, first), others = stream_behind(draft, other);
  const bool first_is_thinner = others < 0 || (kept >= 0 && draft.before(others, kept));
  const int filter_index = first_is_thinner ? kept : others, unfiltered_index = first_is_thinner ? other : first;
  const std::string &filter = draft.node(filter_index).name(), &unfiltered = draft.node(unfiltered_index).name();
  const std::string help = draft.before(unfiltered_index, filter_index)
                               ? "take '" + unfiltered + "' out of inputs: its columns come through '" + filter + "'"
                               : "let '" + unfiltered + "' come after '" + filter +
                                     "', or take its columns through the filter: name " + sluice::quoted(unfiltered) +
                                     " in inputs of [nodes." + filter + "]";
  const auto where = std::find_if(node.spec->inputs.begin(), node.spec->inputs.end(),
                                  [&](const Name& input) { return input.text == draft.node(other).name(); });
  draft.error("filter-join", where == node.spec->inputs.end() ? place_of(node) : where->where,
              "'" + node.name() + "' cannot join micro-batches of different groups",
              hands_on(draft, first) + ", " + hands_on(draft, other), help);
}

void check_streams(Draft& draft) {
  for (const int index : draft.order) {
    DraftNode& node = draft.node(index);
    if (node.inputs.empty()) continue;
    const int first = node.inputs.front();
    node.stream = stream_behind(draft, first);
    const auto other = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](int input) { return stream_behind(draft, input) != node.stream; });
    if (other == node.inputs.end()) continue;
    report_mixed(draft, node, first, *other);
    node.stream = std::max(node.stream, stream_behind(draft, *other));  // after it one report is enough
  }
}

}  // namespace

void check_filters(Draft& draft) {
  for (const int index : draft.order) {
    if (!draft.node(index).bound) continue;
    check_contract(draft, draft.node(index));
    check_scope(draft, draft.node(index));
  }
  find_refill(draft);
  for (const DraftPath& path : draft.paths) check_waits(draft, path);
  check_streams(draft);
}

}  // namespace sluice::engine::checking
