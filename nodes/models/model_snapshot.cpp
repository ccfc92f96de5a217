#include "nodes/models/model_snapshot.h"

#include "base/error.h"
#include "base/folder.h"

namespace sluice::nodes {

ModelSnapshot::ModelSnapshot(const models::Transformer& live, const models::AdamW& optimizer, SavedVersions& versions,
                             engine::World world, models::SavedAdapter adapter)
    : live_(live),
      optimizer_(optimizer),
      versions_(versions),
      world_(world),
      adapter_(adapter),
      writes_folder_(models::writes_folder(live, save_options())),
      weights_(kept_weights().size()),
      first_moments_(optimizer.owned().size()),
      second_moments_(optimizer.owned().size()) {}

// float32, whatever is frozen: rounding would lose what was learned in small steps.
models::SaveOptions ModelSnapshot::save_options() const {
  return {.dtype = at::kFloat, .adapter = adapter_, .share = {.writer = world_.rank, .writers = world_.size}};
}

SnapshotWriter ModelSnapshot::writer() const {
  if (optimizer_.owners() == 1) return {};
  return {.rank = world_.rank, .ranks = world_.size};
}

// Who writes a file of the folder needs all weights: tensors of the file are made of them.
FloatRange ModelSnapshot::kept_weights() const {
  if (writes_folder_) return {0, optimizer_.parameters().size()};
  return optimizer_.owned();
}

void ModelSnapshot::prepare() {
  if (!writes_state() && !writes_folder_) return;
  weights_.prepare();
  if (!writes_state()) return;
  first_moments_.prepare();
  second_moments_.prepare();
}

void ModelSnapshot::take(engine::VersionRange range, engine::CheckpointCopy copy_to) {
  forget();
  const FloatRange kept = kept_weights();
  const at::Tensor weights = optimizer_.parameters().weight_buffer().narrow(0, kept.begin, kept.size());
  if (copy_to == engine::CheckpointCopy::kMemory)
    copy(weights);
  else
    taken_ = taken_of(weights, optimizer_.first_moments(), optimizer_.second_moments());
  range_ = range;
  if (world_.rank == 0) older_ = versions_.lend(range.oldest, range.newest);
}

void ModelSnapshot::copy(const at::Tensor& weights) {
  if (writes_state() || writes_folder_) weights_.copy(weights);
  if (writes_state()) {
    first_moments_.copy(optimizer_.first_moments());
    second_moments_.copy(optimizer_.second_moments());
  }
  taken_ = taken_of(weights_.tensor(), first_moments_.tensor(), second_moments_.tensor());
}

ModelSnapshot::Taken ModelSnapshot::taken_of(const at::Tensor& weights, const at::Tensor& first_moments,
                                             const at::Tensor& second_moments) const {
  const models::FlatParameters& parameters = optimizer_.parameters();
  const FloatRange owned = optimizer_.owned();
  Taken taken;
  if (writes_folder_) taken.weights = parameters.views(weights);
  if (!writes_state()) return taken;
  const at::Tensor own = weights.narrow(0, owned.begin - kept_weights().begin, owned.size());
  taken.state = {.weights = parameters.pieces(own, owned),
                 .first_moments = parameters.pieces(first_moments, owned),
                 .second_moments = parameters.pieces(second_moments, owned),
                 .steps = optimizer_.steps()};
  return taken;
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
