#include "nodes/models/trained_model.h"

#include <span>
#include <utility>
#include <vector>

#include "nodes/models/snapshot_files.h"

namespace sluice::nodes {

namespace {

models::OptimizerShare share_of(const Training& training) {
  const engine::World& world = training.world;
  models::OptimizerShare share{.slots = world.slots, .mine = world.mine(), .floats_of_bucket = training.floats_of_bucket};
  if (training.shard_optimizer) share.owner = world.rank, share.owners = world.owners();
  return share;
}

// Rank 0 saves them alone.
engine::ModelVersions saved_by(int rank, engine::ModelVersions versions) {
  if (rank > 0) versions.saved = 0;
  return versions;
}

}  // namespace

TrainedModel::TrainedModel(const ForwardModel& live, const Training& training, engine::ModelVersions versions,
                           WeightPublisher& next)
    : live_(live),
      learning_rate_(training.learning_rate),
      world_(training.world),
      optimizer_(live.transformer().weights().trainable(), training.optimizer, share_of(training)),
      saved_versions_(saved_by(training.world.rank, versions), optimizer_.parameters().weight_buffer(), next),
      snapshot_(live.transformer(), optimizer_, saved_versions_, training.world.of_owners(), training.saved_adapter) {
  const auto bytes = [](int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)); };
  if (training.gradients != nullptr)
    buckets_ = std::make_unique<GradientBuckets>(optimizer_, *training.gradients, world_.owners());
  optimizer_bytes_ = 2 * bytes(floats_of(optimizer_.owned()));
  gradient_bytes_ = (world_.mine().last - world_.mine().first) * bytes(optimizer_.parameters().size());
  saved_versions_.keep(0);
}

double TrainedModel::enter_iteration(int64_t iteration) {
  if (learning_rate_) optimizer_.set_learning_rate(learning_rate_->at(iteration));
  return optimizer_.learning_rate();
}

void TrainedModel::expect_last_backward() {
  if (buckets_) buckets_->expect_last_backward();
}

// On several ranks the slots of a bucket are added when it is given to the others.
bool TrainedModel::add_up_slots() {
  models::FlatParameters& parameters = optimizer_.parameters();
  if (!parameters.take_entered()) return false;
  if (!buckets_) parameters.add_up_slots({0, parameters.size()});
  return true;
}

void TrainedModel::add_up_ranks(const std::function<void()>& done) {
  if (!buckets_) return done();
  buckets_->add_up(done);
}

// Where no step was made, as after a gradient that is not finite, all ranks have the weights: none makes one then.
void TrainedModel::bring_weights(const std::function<void()>& done) {
  if (!buckets_ || std::exchange(brought_, optimizer_.steps()) == optimizer_.steps()) return done();
  buckets_->bring_weights(done);
}

void TrainedModel::write_snapshot(const std::filesystem::path& source, const std::filesystem::path& folder, FileSystem& files) {
  snapshot_.write(name(), source, folder, files);
}

void TrainedModel::restore(const std::filesystem::path& folder, engine::VersionRange versions) {
  const models::FlatParameters& parameters = optimizer_.parameters();
  const at::Tensor& weights = parameters.weight_buffer();
  const models::NamedTensors views = parameters.views(weights);
  publisher().restart();
  for (int64_t version = versions.oldest; version < versions.newest; ++version) {
    read_version(views, version, folder, name());
    publisher().publish(version);
  }
  const auto pieces_of = [&](const at::Tensor& moments) {
    return parameters.pieces(models::packed_stretches(moments, optimizer_.owned()));
  };
  TrainingState state{.weights = parameters.pieces({{{0, parameters.size()}, weights}}),
                      .first_moments = pieces_of(optimizer_.first_moments()),
                      .second_moments = pieces_of(optimizer_.second_moments())};
  read_training_state(state, views, folder, name());
  optimizer_.set_steps(state.steps);
  brought_ = state.steps;
  publisher().publish(versions.newest);
}

engine::ModelBytes TrainedModel::bytes() const {
  return {.weights = 0,
          .copies = snapshot_.bytes() + saved_versions_.bytes(),
          .gradients = gradient_bytes_,
          .optimizer = optimizer_bytes_};
}

}  // namespace sluice::nodes
