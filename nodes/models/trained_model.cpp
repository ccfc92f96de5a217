#include "nodes/models/trained_model.h"

#include <span>
#include <utility>
#include <vector>

#include "base/float_range.h"
#include "nodes/models/snapshot_files.h"

namespace sluice::nodes {

namespace {

models::OptimizerShare share_of(const Training& training) {
  const engine::World& world = training.world;
  models::OptimizerShare share{.slots = world.slots, .mine = world.mine()};
  if (training.shard_optimizer) share.owner = world.rank, share.owners = world.size;
  return share;
}

// Rank 0 saves them alone.
engine::ModelVersions saved_by(int rank, engine::ModelVersions versions) {
  if (rank > 0) versions.saved = 0;
  return versions;
}

// Where the floats of each owner begin, in units of `unit` floats; and the end.
std::vector<int64_t> begins_of(int64_t floats, int owners, int64_t unit) {
  std::vector<int64_t> begins;
  for (int owner = 0; owner < owners; ++owner) begins.push_back((owned_floats(floats, owner, owners).begin + unit - 1) / unit);
  begins.push_back((floats + unit - 1) / unit);
  return begins;
}

}  // namespace

TrainedModel::TrainedModel(const ForwardModel& live, const Training& training, engine::ModelVersions versions,
                           WeightPublisher& next)
    : live_(live),
      learning_rate_(training.learning_rate),
      gradients_(training.gradients),
      world_(training.world),
      optimizer_(live.transformer().weights().trainable(), training.optimizer, share_of(training)),
      saved_versions_(saved_by(training.world.rank, versions), optimizer_.parameters().weight_buffer(), next),
      snapshot_(live.transformer(), optimizer_, saved_versions_, training.world, training.saved_adapter) {
  const auto bytes = [](int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)); };
  optimizer_bytes_ = 2 * bytes(optimizer_.owned().size());
  gradient_bytes_ = (world_.mine().last - world_.mine().first) * bytes(optimizer_.parameters().size());
  saved_versions_.keep(0);
}

double TrainedModel::enter_iteration(int64_t iteration) {
  if (learning_rate_) optimizer_.set_learning_rate(learning_rate_->at(iteration));
  return optimizer_.learning_rate();
}

void TrainedModel::add_up_ranks(const std::function<void()>& done) {
  if (gradients_ == nullptr) return done();
  models::FlatParameters& parameters = optimizer_.parameters();
  if (!is_sharded()) return gradients_->all_reduce(parameters.subtrees(), parameters.size(), done);
  const auto added = [this](int64_t begin, std::span<const float> sum) { optimizer_.squares().set(begin, sum); };
  gradients_->reduce_scatter(parameters.subtrees(), parameters.size(), added, [this, done] {
    // Doubles travel as pairs of floats.
    std::vector<int64_t> begins = begins_of(optimizer_.parameters().size(), world_.size, kFloatsOfABlock);
    for (int64_t& begin : begins) begin *= 2;
    gradients_->all_gather(reinterpret_cast<float*>(optimizer_.squares().sums().data()), std::move(begins), done);
  });
}

// Where no step was made, as after a gradient that is not finite, all ranks have the weights: none makes one then.
void TrainedModel::bring_weights(const std::function<void()>& done) {
  if (!is_sharded() || std::exchange(brought_, optimizer_.steps()) == optimizer_.steps()) return done();
  models::FlatParameters& parameters = optimizer_.parameters();
  gradients_->all_gather(parameters.weights(), begins_of(parameters.size(), world_.size, 1), done);
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
  TrainingState state{.weights = parameters.pieces(weights, {0, parameters.size()}),
                      .first_moments = parameters.pieces(optimizer_.first_moments(), optimizer_.owned()),
                      .second_moments = parameters.pieces(optimizer_.second_moments(), optimizer_.owned())};
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
