#include "engine/schedule/stages/packing_stage.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/contract/columns/contract_breach.h"
#include "engine/observe/engine_metrics.h"

namespace sluice::engine {

PackingStage::PackingStage(RunState& state, int path, StageHost& maker, std::function<void(Packet)> emit)
    : state_(state),
      path_(state.paths[static_cast<size_t>(path)]),
      is_main_(path == state.main_path),
      maker_(maker),
      emit_(std::move(emit)),
      readers_(state.filter_streams.readers_at_intake(path)),
      packer_(path_.plan.micro_batch_tokens, path_.plan.capacity.group_tokens) {}

void PackingStage::add(const Iteration& iteration, Group group, Credit credit, bool last) {
  credits_.emplace(group.index, std::move(credit));
  emit_all(iteration, packer_.add(std::move(group)), last);
}

void PackingStage::end(const Iteration& iteration) { emit_({.sequence = sequence_++, .iteration = iteration, .batch = nullptr}); }

void PackingStage::emit_all(const Iteration& iteration, std::vector<Packer::Batch> batches, bool last) {
  last = last && packer_.is_empty();
  for (Packer::Batch& batch : batches) {
    std::vector<Credit> credits;
    for (const int64_t group : batch.group_indices) credits.push_back(std::move(credits_.extract(group).mapped()));
    auto packed = std::make_shared<BatchState>(iteration.index, batch.id, std::move(batch.layout), std::move(batch.group_indices),
                                               std::move(credits), readers_, state_.columns);
    packed->slot = batch.slot;
    packed->is_last = last && &batch == &batches.back();
    tell_observers(*packed, batch.columns);
    for (Group::NamedColumn& column : batch.columns) packed->store(slot_of(column.spec), std::move(column.data));
    record(*packed);
    state_.traffic.handed_on(maker_.index(), packed.get());
    emit_({.sequence = sequence_++, .iteration = iteration, .batch = std::move(packed)});
  }
}

void PackingStage::record(const BatchState& packed) {
  MetricsRecorder& recorder = maker_.metrics();
  recorder.sum(metrics::kGroups, static_cast<double>(packed.layout.groups()));
  recorder.sum(metrics::kSamples, static_cast<double>(packed.layout.samples()));
  recorder.sum(metrics::kTokens, static_cast<double>(packed.layout.tokens()));
  recorder.sum(path_.plan.rollout ? metrics::kSampledTokens : metrics::kActionTokens,
               static_cast<double>(packed.layout.actions()));
}

// Of the columns before they are stored: what no node reads is gone then.
void PackingStage::tell_observers(const BatchState& packed, const std::vector<Group::NamedColumn>& columns) {
  if (!is_main_) return;
  WrittenColumns written{
      .iteration = packed.iteration, .micro_batch = packed.id, .layout = packed.layout, .group_indices = packed.group_indices};
  for (const Group::NamedColumn& column : columns) written.columns.emplace_back(&column.spec, &column.data);
  state_.activity.wrote(written);
  state_.activity.packed(packed.iteration, packed.layout);
}

// Of a column that the source or the rollout writes.
size_t PackingStage::slot_of(const ColumnSpec& spec) const {
  for (const int writer : {path_.plan.source, path_.plan.maker()}) {
    for (const int column : state_.plan.nodes[static_cast<size_t>(writer)].writes) {
      if (state_.column_specs[static_cast<size_t>(column)] == spec) return static_cast<size_t>(column);
    }
  }
  throw_contract_breach("it writes column '" + spec.name + "', which its contract does not say");
}

}  // namespace sluice::engine
