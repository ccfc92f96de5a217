#include "nodes/models/snapshot/model_snapshot.h"

#include <ATen/core/grad_mode.h>

#include <memory>
#include <utility>

#include "base/error.h"
#include "base/files/folder.h"

namespace sluice::nodes {

ModelSnapshot::ModelSnapshot(const models::Transformer& live, const models::AdamW& optimizer, SavedVersions& versions,
                             engine::World world, models::SavedAdapter adapter)
    : live_(live),
      optimizer_(optimizer),
      versions_(versions),
      world_(world),
      adapter_(adapter),
      writes_folder_(models::writes_folder(live, save_options())),
      weights_(floats_of(kept_weights())),
      first_moments_(floats_of(optimizer.owned())),
      second_moments_(floats_of(optimizer.owned())) {}

// float32, whatever is frozen: rounding would lose what was learned in small steps.
models::SaveOptions ModelSnapshot::save_options() const {
  return {.dtype = at::kFloat, .adapter = adapter_, .share = {.writer = world_.rank, .writers = world_.size}};
}

SnapshotWriter ModelSnapshot::writer() const {
  if (optimizer_.owners() == 1) return {};
  return {.rank = world_.rank, .ranks = world_.size};
}

// Who writes a file of the folder needs all weights: tensors of the file are made of them.
std::vector<FloatRange> ModelSnapshot::kept_weights() const {
  if (writes_folder_) return {{0, optimizer_.parameters().size()}};
  return optimizer_.owned();
}

void ModelSnapshot::copy_to(at::Tensor copy, std::vector<FloatRange> part, Meet meet) {
  common_ = std::move(copy);
  part_ = std::move(part);
  meet_ = std::move(meet);
}

int64_t ModelSnapshot::bytes() const {
  const int64_t common = has_common_copy_ ? floats_of(part_) * static_cast<int64_t>(sizeof(float)) : 0;
  return common + weights_.bytes() + first_moments_.bytes() + second_moments_.bytes();
}

void ModelSnapshot::prepare() {
  if (!writes_state() && !writes_folder_) return;
  if (!common_.defined()) weights_.prepare();
  if (!writes_state()) return;
  first_moments_.prepare();
  second_moments_.prepare();
}

void ModelSnapshot::take(engine::VersionRange range, engine::CheckpointCopy copy_to) {
  forget();
  if (copy_to == engine::CheckpointCopy::kMemory)
    take_copy();
  else
    take_live();
  range_ = range;
  if (world_.rank == 0) older_ = versions_.lend(range.oldest, range.newest);
}

void ModelSnapshot::take_live() {
  const at::Tensor& weights = optimizer_.parameters().weight_buffer();
  taken_.emplace();
  if (writes_folder_) taken_->weights = optimizer_.parameters().views(weights);
  if (writes_state())
    taken_->state =
        state_of(models::stretches_of(weights, optimizer_.owned()), optimizer_.first_moments(), optimizer_.second_moments());
}

void ModelSnapshot::take_copy() {
  taken_.emplace();
  if (common_.defined()) return copy_in_common();
  if (!writes_state() && !writes_folder_) return;
  std::vector<at::Tensor> live;
  for (auto& [range, values] : models::stretches_of(optimizer_.parameters().weight_buffer(), kept_weights()))
    live.push_back(std::move(values));
  weights_.copy(live);
  if (writes_folder_) taken_->weights = optimizer_.parameters().views(weights_.tensor());
  if (!writes_state()) return;
  copy_moments();
  const auto owned = writes_folder_ ? models::stretches_of(weights_.tensor(), optimizer_.owned())
                                    : models::packed_stretches(weights_.tensor(), optimizer_.owned());
  taken_->state = state_of(owned, first_moments_.tensor(), second_moments_.tensor());
}

// What others have copied may only be read when they have: write() waits for it.
void ModelSnapshot::copy_in_common() {
  const at::NoGradGuard no_gradient;
  const auto copies = models::stretches_of(common_, part_);
  const auto live = models::stretches_of(optimizer_.parameters().weight_buffer(), part_);
  for (size_t i = 0; i < copies.size(); ++i) copies[i].values.copy_(live[i].values);
  has_common_copy_ = true;
  auto copied = std::make_shared<std::promise<void>>();
  copied_ = copied->get_future();
  meet_([copied] { copied->set_value(); });
  if (writes_folder_) taken_->weights = optimizer_.parameters().views(common_);
  if (!writes_state()) return;
  copy_moments();
  taken_->state = state_of(models::stretches_of(common_, optimizer_.owned()), first_moments_.tensor(), second_moments_.tensor());
}

void ModelSnapshot::copy_moments() {
  first_moments_.copy({optimizer_.first_moments()});
  second_moments_.copy({optimizer_.second_moments()});
}

TrainingState ModelSnapshot::state_of(const std::vector<models::Stretch>& weights, const at::Tensor& first_moments,
                                      const at::Tensor& second_moments) const {
  const models::FlatParameters& parameters = optimizer_.parameters();
  return {.weights = parameters.pieces(weights),
          .first_moments = parameters.pieces(models::packed_stretches(first_moments, optimizer_.owned())),
          .second_moments = parameters.pieces(models::packed_stretches(second_moments, optimizer_.owned())),
          .steps = optimizer_.steps()};
}

void ModelSnapshot::forget() {
  older_.clear();
  versions_.give_back();
  taken_.reset();
}

void ModelSnapshot::write(const std::string& name, const std::filesystem::path& source, const std::filesystem::path& folder,
                          FileSystem& files) {
  SLUICE_CHECK(taken_.has_value(), "no snapshot was taken");
  struct Written {  // or failed
    ModelSnapshot& snapshot;
    ~Written() { snapshot.forget(); }
  } const written{*this};

  if (copied_.valid()) copied_.get();
  if (writes_folder_) {
    const models::Transformer of_then(live_.config(), live_.weights().with(taken_->weights), live_.compute());
    models::write_folder(of_then, source, folder / name, save_options(), files);
  }
  if (writes_state()) write_training_state(taken_->state, folder, name, writer(), files);
  for (size_t i = 0; i < older_.size(); ++i) {
    const models::NamedTensors weights = optimizer_.parameters().views(older_[i]);
    write_version(weights, range_.oldest + static_cast<int64_t>(i), folder, name, files);
  }
  sync_folder(folder, files);
}

}  // namespace sluice::nodes
