#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/columns/layout.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/trained_model.h"

namespace sluice::nodes {

/// What the routers of a mixture of experts do with the tokens that a model is trained on: metrics GROUP/..., declared where the
/// model is a mixture. They are of the layers that a gradient goes through, and of all tokens of the samples that are computed.
/// No token is ever dropped, so how evenly the experts are used is a matter of time and of what they learn, not of what is lost.
///
/// The load of an expert is its tokens over those that it would have if all experts of the layer had the same. It is taken of an
/// optimizer step, from whole numbers that are added over micro-batches and ranks. The rest are means over tokens or samples of
/// exact sums. So nothing depends on passes, micro-batches or ranks. Used by one thread.
class RouterMetrics {
 public:
  /// Of a model without routers nothing is recorded. `group`: "router"; without it a total of that name.
  RouterMetrics(TrainedModel& model, std::string group, const engine::NodeResources& resources);

  /// Declares the metrics of the model that the key `model` names, where `when` holds.
  template <class P, std::predicate<const P&> When>
  static void describe(engine::Contract<P>& c, const std::string& model, const std::string& group, When when);
  template <class P>
  static void describe(engine::Contract<P>& c, const std::string& model) {
    describe(c, model, kGroup, [](const P&) { return true; });
  }

  static constexpr const char* kGroup = "router";

  /// How much the objective counts each sample of the next pass.
  void expect(std::vector<double> counted);

  /// Records what the passes since the last call have told.
  void record_passes();

  /// Records the loads of a step, once totals can be read.
  void record_step();

 private:
  models::RouterTraining* const routers_;  // null: none; the model's
  const int64_t experts_;
  const bool first_;  // of the ranks: what all know alike, one of them records
  const std::string group_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
};

/// What a mean over actions counts each of the samples `chosen`: the sum of its mask[A]; without a mask (empty) its actions.
std::vector<double> counted_actions(const engine::Layout& layout, std::span<const float> mask, std::span<const size_t> chosen);

template <class P, std::predicate<const P&> When>
void RouterMetrics::describe(engine::Contract<P>& c, const std::string& model, const std::string& group, When when) {
  using engine::Metric;
  c.total_if(when, group);
  const std::string mixture = "; where " + model + " is a mixture of experts";
  const auto metric = [&](const char* name, Metric kind, const char* doc) {
    c.metric_of_mixture(model, when, group + "/" + name, kind, doc + mixture);
  };
  metric("load_max", Metric::kMean,
         "tokens of a layer's busiest expert over those of an even spread, 1 at the least; mean over the layers and steps");
  metric("load_max_worst_layer", Metric::kMaximum, "the same of the layer and step where it is the largest");
  metric("experts_idle", Metric::kMean,
         "share of the experts of a layer that got no token in a step; mean over the layers and steps");
  metric("entropy_mean", Metric::kMean, "mean over tokens and layers of the entropy of the router's softmax, in nats");
  metric("aux_loss", Metric::kMean,
         "load-balancing loss of a sample in a layer, 1 where its tokens are spread evenly; mean over the layers, and over the "
         "samples as the objective counts them; router_aux_loss is its weight");
  metric(
      "rerouted", Metric::kMean,
      "share of the tokens that go through other experts than the router likes best, because routes are replayed; mean over the "
      "tokens and layers");
}

}  // namespace sluice::nodes
