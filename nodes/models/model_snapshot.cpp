#include "nodes/models/model_snapshot.h"

#include "base/error.h"
#include "base/folder.h"
#include "nodes/models/snapshot_files.h"

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

void ModelSnapshot::take(engine::VersionRange range) {
  forget();
  weights_.copy(optimizer_.parameters().weight_buffer());
  first_moments_.copy(optimizer_.first_moments());
  second_moments_.copy(optimizer_.second_moments());
  steps_ = optimizer_.steps();
  range_ = range;
  older_ = versions_.lend(range.oldest, range.newest);
  taken_ = true;
}

void ModelSnapshot::forget() {
  older_.clear();
  versions_.give_back();
  taken_ = false;
}

// The model with the copies of its trained weights.
models::Transformer ModelSnapshot::frozen_in_time() const {
  return {live_.config(), live_.weights().with(optimizer_.parameters().views(weights_.tensor())), live_.compute()};
}

void ModelSnapshot::write(const std::string& name, const std::filesystem::path& source, models::SavedAdapter adapter,
                          const std::filesystem::path& folder, FileSystem& files) {
  SLUICE_CHECK(taken_, "no snapshot was taken");
  struct Written {  // or failed
    ModelSnapshot& snapshot;
    ~Written() { snapshot.forget(); }
  } const written{*this};

  const models::FlatParameters& parameters = optimizer_.parameters();
  // float32, whatever is frozen: rounding would lose what was learned in small steps.
  models::write_folder(frozen_in_time(), source, folder / name, {.dtype = at::kFloat, .adapter = adapter}, files);
  write_training_state({.weights = parameters.views(weights_.tensor()),
                        .first_moments = parameters.views(first_moments_.tensor()),
                        .second_moments = parameters.views(second_moments_.tensor()),
                        .steps = steps_},
                       folder, name, files);
  for (size_t i = 0; i < older_.size(); ++i)
    write_version(parameters.views(older_[i]), range_.oldest + static_cast<int64_t>(i), folder, name, files);
  sync_folder(folder, files);
}

}  // namespace sluice::nodes
