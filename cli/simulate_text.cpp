#include "cli/simulate_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json.h"
#include "base/strings.h"

namespace sluice::cli {
namespace {

using engine::SimulationResult;

// Three digits, whatever the unit: simulations of toys take milliseconds, of large models days.
std::string duration(double seconds) {
  if (seconds >= 99.95) return human_seconds(seconds);
  if (seconds >= 0.9995) return fixed(seconds, seconds < 9.995 ? 2 : 1) + " s";
  return fixed(seconds * 1e3, seconds < 9.995e-3 ? 2 : 1) + " ms";
}

/// Rows of cells under a header; the first column is left-aligned, numbers are right-aligned.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) { add(std::move(header)); }

  void add(std::vector<std::string> row) {
    widths_.resize(std::max(widths_.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
    rows_.push_back(std::move(row));
  }

  std::string text() const {
    std::string text;
    for (const std::vector<std::string>& row : rows_) {
      std::string line = "  ";
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string space(widths_[i] - row[i].size(), ' ');
        line += (i == 0 ? row[i] + space : "   " + space + row[i]);
      }
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> widths_;
};

std::string heading(const SimulationView& view) {
  const SimulationResult& result = view.variants.front().result;
  std::string text = view.pipeline + ": " + plural(result.iterations, "iteration") + " would take " + duration(result.seconds);
  if (result.ranks) text += " on " + plural(result.ranks->count, "rank");
  if (view.costs_from.empty()) {
    return text + "\n  an estimate: " + fixed(view.gflops, 0) +
           " billion operations a second for each core, nothing but the models counted, responses of all lengths alike\n" +
           "  better: --costs RUN, with the folder of a run that has ended, however short\n";
  }
  text += ", by the costs of " + view.costs_from;
  if (view.measured_iterations > 0) {
    text += " (" + plural(view.measured_iterations, "iteration") + " in " + duration(view.measured_seconds) + ")";
  }
  return text + "\n";
}

// Parts of the time, and the seconds of an iteration that a rank waits for the network.
std::string ranks_text(const SimulationResult& result) {
  if (!result.ranks) return {};
  const SimulationResult::Ranks& ranks = *result.ranks;
  TextTable table({"of " + plural(ranks.count, "rank"), "least", "mean", "most"});
  const auto add = [&](const std::string& what, const SimulationResult::Share& share) {
    table.add({what, percent(share.least, 1), percent(share.mean, 1), percent(share.most, 1)});
  };
  add("busy", ranks.busy);
  add("waits for others", ranks.waits_for_others);
  add("waits for the network", ranks.waits_for_network);
  const auto iterations = static_cast<double>(std::max<int64_t>(1, result.iterations));
  return table.text() + "  an iteration takes " + duration(result.seconds / iterations) + ", of which a rank waits " +
         duration(ranks.network_seconds / iterations) + " for the network\n\n";
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
    table.add({node.name, node.executor, duration(node.busy_seconds), percent(node.busy_seconds, result.seconds),
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
         " tokens; columns at most " + human_bytes(static_cast<double>(result.column_bytes_peak)) + "\n  |" +
         bars(result.tokens_in_flight, budget) + "|  tokens in flight, 0 to " + duration(result.seconds) + "\n";
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

double ratio(const SimulationView& view, const SimulationResult& result) {
  const double base = view.variants.front().result.seconds;
  return base > 0 ? result.seconds / base : 0;
}

std::string variants_text(const SimulationView& view) {
  TextTable table({"what if", "time", "ratio", "generation", "training", "both at once", "in flight"});
  for (const SimulationView::Variant& variant : view.variants) {
    const SimulationResult& result = variant.result;
    const std::string name = variant.setting.empty() ? "as it is" : variant.setting;
    if (result.stall) {
      table.add({name, "stalls"});
      continue;
    }
    table.add({name, duration(result.seconds), fixed(ratio(view, result), 2), percent(result.rollout_seconds, result.seconds),
               percent(result.train_seconds, result.seconds), percent(result.overlap_seconds, result.seconds),
               human_count(static_cast<double>(result.tokens_in_flight_peak))});
  }
  return table.text();
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

Json json_of(const SimulationResult::Share& share) {
  return {{"least", share.least}, {"mean", share.mean}, {"most", share.most}};
}

Json json_of(const SimulationResult::Ranks& ranks) {
  return {{"count", ranks.count},
          {"busy", json_of(ranks.busy)},
          {"waits_for_others", json_of(ranks.waits_for_others)},
          {"waits_for_network", json_of(ranks.waits_for_network)},
          {"network_seconds", ranks.network_seconds}};
}

Json json_of(const SimulationView& view, const SimulationView::Variant& variant) {
  const SimulationResult& result = variant.result;
  Json json{{"setting", variant.setting},
            {"seconds", result.seconds},
            {"ratio", ratio(view, result)},
            {"stalls", result.stall.has_value()},
            {"iterations", result.iterations},
            {"iteration_seconds", result.iteration_seconds},
            {"tokens", result.tokens},
            {"sampled_tokens", result.sampled_tokens},
            {"rollout_seconds", result.rollout_seconds},
            {"train_seconds", result.train_seconds},
            {"overlap_seconds", result.overlap_seconds},
            {"tail_seconds", result.tail_seconds},
            {"budget", result.budget},
            {"tokens_in_flight_peak", result.tokens_in_flight_peak},
            {"tokens_in_flight", result.tokens_in_flight},
            {"column_bytes_peak", result.column_bytes_peak},
            {"executors", Json::array()},
            {"nodes", Json::array()},
            {"notes", result.notes}};
  if (result.ranks) json["ranks"] = json_of(*result.ranks);
  for (const SimulationResult::Executor& use : result.executors) {
    json["executors"].push_back({{"name", use.name},
                                 {"threads", use.threads},
                                 {"busy_seconds", use.busy_seconds},
                                 {"gap_seconds", use.gap_seconds},
                                 {"no_credit_seconds", use.no_credit_seconds},
                                 {"no_weights_seconds", use.no_weights_seconds},
                                 {"no_input_seconds", use.no_input_seconds}});
  }
  for (const SimulationResult::Node& node : result.nodes) {
    json["nodes"].push_back({{"name", node.name},
                             {"executor", node.executor},
                             {"micro_batches", node.micro_batches},
                             {"tokens", node.tokens},
                             {"busy_seconds", node.busy_seconds}});
  }
  return json;
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

std::string simulation_json(const SimulationView& view) {
  Json json{{"pipeline", view.pipeline}, {"estimated", view.costs_from.empty()}};
  if (view.costs_from.empty()) {
    json["gflops"] = view.gflops;
  } else {
    json["costs"] = view.costs_from;
    json["measured_seconds"] = view.measured_seconds;
    json["measured_iterations"] = view.measured_iterations;
  }
  json["variants"] = Json::array();
  for (const SimulationView::Variant& variant : view.variants) json["variants"].push_back(json_of(view, variant));
  return json.dump(2) + "\n";
}

}  // namespace sluice::cli
