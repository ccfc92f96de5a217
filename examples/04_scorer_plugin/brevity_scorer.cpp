// A scorer as a plugin: right answers score 1, and every character beyond a limit costs something.
#include <algorithm>

#include "engine/contract/node.h"
#include "engine/contract/plugin/plugin.h"
#include "engine/contract/registry.h"
#include "nodes/columns/columns.h"

namespace brevity {

using namespace sluice;

struct BrevityParams {
  int64_t free_characters = 2;
  double cost = 0.1;
};

/// Scores exact answers, less `cost` for every character beyond `free_characters`.
///
///   [nodes.score]
///   type = "brevity_score"
///   inputs = ["generate"]
///   free_characters = 2
///   cost = 0.1
///
/// Reads response[S], label[G]; writes score[S].
class BrevityScore final : public engine::Node {
 public:
  static void describe(engine::Contract<BrevityParams>& c) {
    c.type("brevity_score", "1 for the right answer, less a cost for each character too many");
    c.param("free_characters", &BrevityParams::free_characters).at_least(0).unit("characters").doc("length that costs nothing");
    c.param("cost", &BrevityParams::cost).at_least(0).doc("of each character beyond");
    c.reads(nodes::columns::kResponse, nodes::columns::kLabel);
    c.writes(nodes::columns::kScore);
    c.metric("reward/score", engine::Metric::kMoments, "mean and standard deviation of the score");
  }

  BrevityScore(const BrevityParams& params, engine::NodeResources& resources) : params_(params), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override {
    const auto responses = batch.read(nodes::columns::kResponse);  // [S]
    const auto labels = batch.read(nodes::columns::kLabel);        // [G]
    auto scores = batch.write(nodes::columns::kScore);             // [S]
    const auto samples = batch.layout().samples_by_group();
    for (size_t g = 0; g < samples.size(); ++g) {
      for (size_t s = samples[g].begin; s < samples[g].end; ++s) {
        const auto excess = std::max<int64_t>(0, static_cast<int64_t>(responses[s].size()) - params_.free_characters);
        scores[s] = static_cast<float>((responses[s] == labels[g] ? 1.0 : 0.0) - params_.cost * static_cast<double>(excess));
        metrics_.moments("reward/score", scores[s]);
      }
    }
  }

 private:
  BrevityParams params_;
  engine::MetricsRecorder& metrics_;
};

void register_nodes(engine::Registry& registry) { registry.add<BrevityScore>(); }

}  // namespace brevity

SLUICE_PLUGIN(brevity::register_nodes)
