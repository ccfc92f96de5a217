#include "nodes/models/model_snapshot.h"

#include "base/error.h"
#include "base/folder.h"

namespace sluice::nodes {

ModelSnapshot::ModelSnapshot(const models::Transformer& live, const models::AdamW& optimizer, SavedVersions& versions)
    : live_(live),
      optimizer_(optimizer),
      versions_(versions),
      weights_(optimizer.parameters().size()),
      first_moments_(optimizer.parameters().size()),
      second_moments_(optimizer.parameters().size()) {}

void ModelSnapshot::prepare() {
  for (models::HostCopy* copy : {&weights_, &first_moments_, &second_moments_}) copy->prepare();
}

void ModelSnapshot::take(engine::VersionRange range, engine::CheckpointCopy copy) {
  forget();
  const at::Tensor& weights = optimizer_.parameters().weight_buffer();
  taken_ = copy == engine::CheckpointCopy::kMemory ? copied()
                                                   : state_of(weights, optimizer_.first_moments(), optimizer_.second_moments());
  range_ = range;
  older_ = versions_.lend(range.oldest, range.newest);
}

TrainingState ModelSnapshot::copied() {
  weights_.copy(optimizer_.parameters().weight_buffer());
  first_moments_.copy(optimizer_.first_moments());
  second_moments_.copy(optimizer_.second_moments());
  return state_of(weights_.tensor(), first_moments_.tensor(), second_moments_.tensor());
}

TrainingState ModelSnapshot::state_of(const at::Tensor& weights, const at::Tensor& first_moments,
                                      const at::Tensor& second_moments) const {
  const models::FlatParameters& parameters = optimizer_.parameters();
  return {.weights = parameters.views(weights),
          .first_moments = parameters.views(first_moments),
          .second_moments = parameters.views(second_moments),
          .steps = optimizer_.steps()};
}

void ModelSnapshot::forget() {
  older_.clear();
  versions_.give_back();
  taken_.reset();
}

void ModelSnapshot::write(const std::string& name, const std::filesystem::path& source, models::SavedAdapter adapter,
                          const std::filesystem::path& folder, FileSystem& files) {
  SLUICE_CHECK(taken_.has_value(), "no snapshot was taken");
  struct Written {  // or failed
    ModelSnapshot& snapshot;
    ~Written() { snapshot.forget(); }
  } const written{*this};

  const models::Transformer of_then(live_.config(), live_.weights().with(taken_->weights), live_.compute());
  // float32, whatever is frozen: rounding would lose what was learned in small steps.
  models::write_folder(of_then, source, folder / name, {.dtype = at::kFloat, .adapter = adapter}, files);
  write_training_state(*taken_, folder, name, files);
  for (size_t i = 0; i < older_.size(); ++i) {
    const models::NamedTensors weights = optimizer_.parameters().views(older_[i]);
    write_version(weights, range_.oldest + static_cast<int64_t>(i), folder, name, files);
  }
  sync_folder(folder, files);
}

}  // namespace sluice::nodes
