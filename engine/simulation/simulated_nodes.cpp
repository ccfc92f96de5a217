#include "engine/simulation/simulated_nodes.h"

#include <utility>

#include "base/numbers/random.h"
#include "engine/schedule/state/absent_nodes.h"
#include "engine/simulation/length_draws.h"
#include "engine/simulation/simulated_rollout.h"
#include "engine/simulation/written_columns.h"

namespace sluice::engine {
namespace {

class SimulatedSource final : public Source {
 public:
  SimulatedSource(const Plan& plan, const PlanPath& path, const Costs& costs, World world)
      : world_(world),
        draws_(plan, path, costs),
        makes_samples_(!path.rollout),
        samples_(plan.maker_of(path).needs.samples_per_group),
        columns_(written_by(plan, plan.nodes[static_cast<size_t>(path.source)])) {}

  bool next_group(Group& group) override {
    if (world_.size > 1 && !world_.has_slot(group.slot)) return true;  // of another rank: nobody looks at it here
    ++taken_;
    if (makes_samples_) {
      const int64_t prompt = draws_.prompt(group.iteration, group.index);
      for (int64_t sample = 0; sample < samples_; ++sample) {
        const int64_t response = draws_.response(group.iteration, group.index, sample, prompt);
        group.layout.add_sample(prompt + response, response);
      }
    }
    group.layout.end_group();
    for (const ColumnSpec& column : columns_) write_zeros(group, column);
    return true;
  }

  /// Since the last call.
  StepWork next_step() { return {.groups = std::exchange(taken_, 0)}; }

 private:
  const World world_;
  const LengthDraws draws_;
  const bool makes_samples_;
  const int64_t samples_;
  const std::vector<ColumnSpec> columns_;
  int64_t taken_ = 0;
};

using Publish = std::function<void(const std::string& model, int64_t version)>;

class SimulatedNode final : public Node {
 public:
  SimulatedNode(const Plan& plan, size_t node, double kept_share, Publish publish)
      : columns_(written_by(plan, plan.nodes[node])),
        models_(plan.nodes[node].needs.models),
        publish_(std::move(publish)),
        filters_(plan.nodes[node].needs.drops_groups),
        kept_share_(kept_share),
        seed_(static_cast<uint64_t>(plan.pipeline.seed) ^ (kSimulated + 1 + node)) {}

  void process(MicroBatch& batch) override {
    for (const ColumnSpec& column : columns_) batch.write(column);
    if (!filters_) return;
    for (size_t group = 0; group < batch.groups(); ++group) {
      RandomStream verdict(seed_, static_cast<uint64_t>(batch.iteration()), static_cast<uint32_t>(batch.group_index(group)));
      if (verdict.uniform() >= kept_share_) batch.drop_group(group);
    }
  }

  // Each column is written once.
  void process_iteration(int64_t step, std::span<MicroBatch> batches) override {
    if (step == 0) Node::process_iteration(step, batches);
  }

  void end_iteration(const Iteration& iteration) override {
    for (const ModelNeed& need : models_) {
      if (publish_ && need.use == ModelUse::kPublishes) publish_(need.model, iteration.index + 1);
    }
  }

 private:
  const std::vector<ColumnSpec> columns_;
  const std::vector<ModelNeed> models_;
  const Publish publish_;
  const bool filters_;
  const double kept_share_;
  const uint64_t seed_;
};

}  // namespace

SimulatedWorkload make_simulated_workload(const Plan& plan, const Costs& costs, World world, Publish publish) {
  SimulatedWorkload simulated;
  simulated.next_step.resize(plan.paths.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    Workload::Part& part = simulated.workload.parts.emplace_back();
    part.metrics = std::make_unique<MetricsRecorder>(plan.nodes[i].needs.metrics, plan.nodes[i].metrics_prefix);
    part.totals = plan.owners() > 1 ? std::make_unique<Totals>(plan.nodes[i].needs.totals) : std::make_unique<Totals>();
    const PlanPath& path = plan.path_of(static_cast<int>(i));
    std::function<StepWork()>& next_step = simulated.next_step[static_cast<size_t>(plan.nodes[i].path)];
    if (!plan.has(world.rank, static_cast<int>(i))) {
      part.node = absent_node(plan, static_cast<int>(i));
      if (plan.nodes[i].type->kind == NodeKind::kRollout) next_step = [] { return StepWork(); };
      continue;
    }
    switch (plan.nodes[i].type->kind) {
      case NodeKind::kSource: {
        auto source = std::make_unique<SimulatedSource>(plan, path, costs, world);
        if (!path.rollout) next_step = [source = source.get()] { return source->next_step(); };
        part.node = std::move(source);
        break;
      }
      case NodeKind::kRollout: {
        auto rollout = std::make_unique<SimulatedRollout>(plan, path, costs);
        next_step = [rollout = rollout.get()] { return rollout->next_step(); };
        part.node = std::move(rollout);
        break;
      }
      case NodeKind::kOrdinary: {
        const auto known = costs.nodes.find(plan.nodes[i].name);
        part.node = std::make_unique<SimulatedNode>(plan, i, known == costs.nodes.end() ? 1 : known->second.kept_share, publish);
        break;
      }
    }
  }
  return simulated;
}

}  // namespace sluice::engine
