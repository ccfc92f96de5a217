#include "nodes/models/trained_model.h"

#include "nodes/models/snapshot_files.h"

namespace sluice::nodes {

TrainedModel::TrainedModel(const ForwardModel& live, const Training& training, engine::ModelVersions versions,
                           WeightPublisher& next)
    : live_(live),
      saved_adapter_(training.saved_adapter),
      learning_rate_(training.learning_rate),
      gradients_(training.gradients),
      optimizer_(live.transformer().weights().trainable(), training.optimizer, training.world.slots, training.world.mine()),
      saved_versions_(versions, optimizer_.parameters().weight_buffer(), next),
      snapshot_(live.transformer(), optimizer_, saved_versions_) {
  int64_t bytes = 0;
  for (const auto& [name, weight] : live.transformer().weights().trainable()) bytes += static_cast<int64_t>(weight.nbytes());
  optimizer_bytes_ = 2 * bytes;
  gradient_bytes_ = (training.world.mine().last - training.world.mine().first) * bytes;
  saved_versions_.keep(0);
}

double TrainedModel::enter_iteration(int64_t iteration) {
  if (learning_rate_) optimizer_.set_learning_rate(learning_rate_->at(iteration));
  return optimizer_.learning_rate();
}

void TrainedModel::add_up_ranks(const std::function<void()>& done) {
  if (gradients_ == nullptr) return done();
  models::FlatParameters& parameters = optimizer_.parameters();
  gradients_->sum(parameters.subtrees(), parameters.size(), done);
}

void TrainedModel::write_snapshot(const std::filesystem::path& source, const std::filesystem::path& folder, FileSystem& files) {
  snapshot_.write(name(), source, saved_adapter_, folder, files);
}

void TrainedModel::restore(const std::filesystem::path& folder, engine::VersionRange versions) {
  const models::FlatParameters& parameters = optimizer_.parameters();
  TrainingState state{.weights = parameters.views(parameters.weight_buffer()),
                      .first_moments = parameters.views(optimizer_.first_moments()),
                      .second_moments = parameters.views(optimizer_.second_moments())};
  publisher().restart();
  for (int64_t version = versions.oldest; version < versions.newest; ++version) {
    read_version(state.weights, version, folder, name());
    publisher().publish(version);
  }
  read_training_state(state, folder, name());
  optimizer_.set_steps(state.steps);
  publisher().publish(versions.newest);
}

engine::ModelBytes TrainedModel::bytes() const {
  return {.weights = 0,
          .copies = snapshot_.bytes() + saved_versions_.bytes(),
          .gradients = gradient_bytes_,
          .optimizer = optimizer_bytes_};
}

}  // namespace sluice::nodes
