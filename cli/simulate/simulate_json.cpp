#include "base/json/json.h"
#include "cli/simulate/simulate_text.h"

namespace sluice::cli {
namespace {

using engine::SimulationResult;

Json json_of(const SimulationResult::Share& share) {
  return {{"least", share.least}, {"mean", share.mean}, {"most", share.most}};
}

Json json_of(const SimulationResult::Carried& carried) { return {{"bytes", carried.bytes}, {"seconds", carried.seconds}}; }

Json json_of(const SimulationResult::Role& role) {
  return {{"name", role.name},
          {"ranks", role.ranks},
          {"busy", json_of(role.busy)},
          {"waits_for_weights", json_of(role.waits_for_weights)},
          {"waits_for_groups", json_of(role.waits_for_groups)},
          {"waits_for_others", json_of(role.waits_for_others)},
          {"waits_for_network", json_of(role.waits_for_network)}};
}

Json json_of(const SimulationResult::Ranks& ranks) {
  Json json{{"count", ranks.count},
            {"busy", json_of(ranks.busy)},
            {"waits_for_others", json_of(ranks.waits_for_others)},
            {"waits_for_network", json_of(ranks.waits_for_network)},
            {"network_seconds", ranks.network_seconds},
            {"groups_carried", json_of(ranks.columns)}};
  if (ranks.roles.empty()) return json;
  json["weights_carried"] = json_of(ranks.weights);
  json["bubbles"] = ranks.idle;
  json["roles"] = Json::array();
  for (const SimulationResult::Role& role : ranks.roles) json["roles"].push_back(json_of(role));
  return json;
}

Json json_of(const SimulationView& view, const SimulationView::Variant& variant) {
  const SimulationResult& result = variant.result;
  Json json{{"setting", variant.setting},
            {"seconds", result.seconds},
            {"ratio", view.ratio(variant)},
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
