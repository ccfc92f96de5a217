#include "cli/simulate/simulate_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/text/strings.h"
#include "cli/terminal/text_table.h"

namespace sluice::cli {
namespace {

using engine::SimulationResult;

// Ranks that schedule.
int count_of(const SimulationResult& result) { return result.ranks ? result.ranks->count : 1; }

std::string heading(const SimulationView& view) {
  const SimulationResult& result = view.variants.front().result;
  std::string text =
      view.pipeline + ": " + plural(result.iterations, "iteration") + " would take " + simulated_duration(result.seconds);
  const int ranks = view.variants.front().ranks;
  const int assist = ranks - count_of(result) - (result.ranks ? result.ranks->forward : 0);
  if (ranks > 1) text += " on " + plural(ranks, "rank");
  if (assist > 0) text += ", of which " + std::to_string(assist) + (assist == 1 ? " assists" : " assist");
  if (view.costs_from.empty()) {
    return text + "\n  an estimate: " + fixed(view.gflops, 0) +
           " billion operations a second for each core, nothing but the models counted, responses of all lengths alike\n" +
           "  better: --costs RUN, with the folder of a run that has ended, however short\n";
  }
  text += ", by the costs of " + view.costs_from;
  if (view.measured_iterations > 0) {
    text += " (" + plural(view.measured_iterations, "iteration") + " in " + simulated_duration(view.measured_seconds) + ")";
  }
  return text + "\n";
}

// Of each role, as the mean of its ranks.
std::string roles_text(const SimulationResult& result) {
  const SimulationResult::Ranks& ranks = *result.ranks;
  TextTable table({"role", "ranks", "busy", "waits for weights", "for groups or credit", "for others", "for the network"});
  for (const SimulationResult::Role& role : ranks.roles) {
    table.add({role.name, std::to_string(role.ranks), percent(role.busy.mean, 1), percent(role.waits_for_weights.mean, 1),
               percent(role.waits_for_groups.mean, 1), percent(role.waits_for_others.mean, 1),
               percent(role.waits_for_network.mean, 1)});
  }
  const auto iterations = static_cast<double>(std::max<int64_t>(1, result.iterations));
  const auto carried = [&](const char* what, const SimulationResult::Carried& carried) {
    return what + (" " + percent(carried.seconds, result.seconds)) + " of the time, " + human_bytes(carried.bytes / iterations) +
           " an iteration";
  };
  return table.text() + "  an iteration takes " + simulated_duration(result.seconds / iterations) + "; bubbles are " +
         percent(ranks.idle, 1) + " of the ranks' time\n  links carry " + carried("groups", ranks.columns) + "; " +
         carried("weights", ranks.weights) + "\n\n";
}

// Parts of the time, and the seconds of an iteration that a rank waits for the network.
std::string ranks_text(const SimulationResult& result) {
  if (!result.ranks) return {};
  const SimulationResult::Ranks& ranks = *result.ranks;
  if (!ranks.roles.empty()) return roles_text(result);
  TextTable table({"of " + plural(ranks.count, "rank"), "least", "mean", "most"});
  const auto add = [&](const std::string& what, const SimulationResult::Share& share) {
    table.add({what, percent(share.least, 1), percent(share.mean, 1), percent(share.most, 1)});
  };
  add("busy", ranks.busy);
  add("waits for others", ranks.waits_for_others);
  add("waits for the network", ranks.waits_for_network);
  const auto iterations = static_cast<double>(std::max<int64_t>(1, result.iterations));
  return table.text() + "  an iteration takes " + simulated_duration(result.seconds / iterations) + ", of which a rank waits " +
         simulated_duration(ranks.network_seconds / iterations) + " for the network\n\n";
}

std::string executors_text(const SimulationResult& result) {
  TextTable table({"executor", "cores", "busy", "waits for credit", "for weights", "for input", "between work"});
  for (const SimulationResult::Executor& use : result.executors) {
    table.add({use.name, std::to_string(use.threads), percent(use.busy_seconds, result.seconds),
               percent(use.no_credit_seconds, result.seconds), percent(use.no_weights_seconds, result.seconds),
               percent(use.no_input_seconds, result.seconds), percent(use.gap_seconds, result.seconds)});
  }
  return table.text();
}

std::string nodes_text(const SimulationResult& result) {
  TextTable table({"node", "executor", "busy", "of the time", "micro-batches"});
  for (const SimulationResult::Node& node : result.nodes) {
    table.add({node.name, node.executor, simulated_duration(node.busy_seconds), percent(node.busy_seconds, result.seconds),
               node.micro_batches > 0 ? std::to_string(node.micro_batches) : "-"});
  }
  return table.text();
}

// Eighths of a character, the lowest for what is above 0.
std::string bars(const std::vector<double>& values, double most) {
  constexpr const char* kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::string text;
  for (const double value : values) {
    const double eighths = most > 0 ? std::ceil(8 * value / most) : 0;
    text += kEighths[static_cast<size_t>(std::clamp(eighths, 0.0, 8.0))];
  }
  return text;
}

std::string in_flight_text(const SimulationResult& result) {
  const auto budget = static_cast<double>(result.budget);
  return "  in flight at most " + human_count(static_cast<double>(result.tokens_in_flight_peak)) + " of " + human_count(budget) +
         " tokens; columns at most " + human_bytes(result.column_bytes_peak) + "\n  |" + bars(result.tokens_in_flight, budget) +
         "|  tokens in flight, 0 to " + simulated_duration(result.seconds) + "\n";
}

std::string overlap_text(const SimulationResult& result) {
  return "  generation " + percent(result.rollout_seconds, result.seconds) + ", training " +
         percent(result.train_seconds, result.seconds) + ", both at once " + percent(result.overlap_seconds, result.seconds) +
         " of the time; " + human_count(result.seconds > 0 ? static_cast<double>(result.tokens) / result.seconds : 0) +
         " tok/s\n";
}

std::string tail_text(const SimulationResult& result) {
  if (result.tail_seconds == 0) return {};
  return "  the last few samples of iterations take " + percent(result.tail_seconds, result.seconds) + " of the time\n";
}

std::string name_of(const SimulationView::Variant& variant) { return variant.setting.empty() ? "as it is" : variant.setting; }

// "2 + 6", those that train first.
std::string ranks_of(const SimulationResult& result) {
  if (!result.ranks) return "1";
  std::vector<std::string> parts;
  for (const SimulationResult::Role& role : result.ranks->roles) parts.push_back(std::to_string(role.ranks));
  return parts.empty() ? std::to_string(result.ranks->count) : join(parts, " + ");
}

// Which of several variants is best: by the time, and, where they have other numbers of ranks, by what they take of them.
std::string best_text(const SimulationView& view) {
  std::vector<const SimulationView::Variant*> all;
  for (const SimulationView::Variant& variant : view.variants)
    if (!variant.result.stall) all.push_back(&variant);
  if (view.variants.size() < 3 || all.size() < 2) return {};
  const auto seconds = [](const SimulationView::Variant* variant) { return variant->result.seconds; };
  const auto of_ranks = [](const SimulationView::Variant* variant) { return variant->result.seconds * variant->ranks; };
  const auto* const fastest = *std::ranges::min_element(all, {}, seconds);
  std::string text = "  the shortest time: " + name_of(*fastest) + "\n";
  const auto has_as_many = [&](const auto* variant) { return variant->ranks == all.front()->ranks; };
  if (!std::ranges::all_of(all, has_as_many))
    text += "  the least time of all ranks together: " + name_of(**std::ranges::min_element(all, {}, of_ranks)) + "\n";
  return text;
}

std::string variants_text(const SimulationView& view) {
  const bool has_roles = std::ranges::any_of(
      view.variants, [](const auto& variant) { return variant.result.ranks && !variant.result.ranks->roles.empty(); });
  std::vector<std::string> header{"what if", "time", "ratio", "generation", "training", "both at once", "in flight"};
  if (has_roles) header.insert(header.begin() + 1, "ranks");
  TextTable table(std::move(header));
  for (const SimulationView::Variant& variant : view.variants) {
    const SimulationResult& result = variant.result;
    std::vector<std::string> row{name_of(variant)};
    if (has_roles) row.push_back(ranks_of(result));
    if (result.stall) {
      row.emplace_back("stalls");
    } else {
      for (std::string& cell : std::vector<std::string>{
               simulated_duration(result.seconds), fixed(view.ratio(variant), 2), percent(result.rollout_seconds, result.seconds),
               percent(result.train_seconds, result.seconds), percent(result.overlap_seconds, result.seconds),
               human_count(static_cast<double>(result.tokens_in_flight_peak))})
        row.push_back(std::move(cell));
    }
    table.add(std::move(row));
  }
  return table.text() + best_text(view);
}

std::string notes_text(const SimulationView& view) {
  std::vector<std::string> told;
  std::string text;
  for (const SimulationView::Variant& variant : view.variants) {
    for (const std::string& note : variant.result.notes) {
      if (std::ranges::find(told, note) != told.end()) continue;
      told.push_back(note);
      text += "  note: " + (variant.setting.empty() ? "" : "with " + variant.setting + ", ") + note + "\n";
    }
  }
  return text;
}

}  // namespace

std::string simulation_text(const SimulationView& view) {
  const SimulationResult& result = view.variants.front().result;
  std::string text = heading(view) + notes_text(view);
  if (!result.stall)
    text += "\n" + ranks_text(result) + executors_text(result) + "\n" + nodes_text(result) + "\n" + overlap_text(result) +
            tail_text(result) + in_flight_text(result);
  if (view.variants.size() > 1) text += "\n" + variants_text(view);
  return text;
}

}  // namespace sluice::cli
