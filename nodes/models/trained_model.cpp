#include "nodes/models/trained_model.h"

#include <future>
#include <span>
#include <utility>
#include <vector>

#include "base/files/path_kind.h"
#include "models/devices/streams.h"
#include "nodes/models/gradients/device_transport.h"
#include "nodes/models/gradients/host_transport.h"
#include "nodes/models/snapshot/snapshot_files.h"

namespace sluice::nodes {

namespace {

models::OptimizerShare share_of(const Training& training) {
  const engine::World& world = training.world;
  models::OptimizerShare share{.slots = world.slots, .mine = world.mine(), .floats_of_bucket = training.floats_of_bucket};
  if (training.shard_optimizer) share.owner = world.rank, share.owners = world.owners();
  if (training.common) share.common = training.common->parameters;
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
      first_slot_(training.slots.last > training.slots.first ? training.slots.first : training.world.mine().first),
      optimizer_(live.transformer().weights().trainable(), training.optimizer, share_of(training)),
      common_(training.common),
      saved_versions_(saved_by(training.world.rank, versions), optimizer_.parameters().weight_buffer(), next),
      snapshot_(live.transformer(), optimizer_, saved_versions_, training.world.of_owners(), training.saved_adapter) {
  const auto bytes = [](int64_t floats) { return floats * static_cast<int64_t>(sizeof(float)); };
  const int64_t own = floats_of(optimizer_.owned());
  optimizer_bytes_ = 2 * bytes(own);
  if (common_) {
    common_gradients_ =
        std::make_unique<CommonGradients>(optimizer_, training.gradients, world_.owners(), common_->memory->ranks());
    snapshot_.copy_to(common_->copy, part_in_common(), [this](const auto& done) { common_gradients_->wait_for_all(done); });
    gradient_bytes_ = 2 * bytes(floats_of(part_in_common()));
  } else {
    gradient_bytes_ = (world_.mine().last - world_.mine().first) * bytes(optimizer_.parameters().size());
    if (training.gradients != nullptr) buckets_ = std::make_unique<GradientBuckets>(optimizer_, transport_of(training));
  }
  saved_versions_.keep(0);
}

std::unique_ptr<BucketTransport> TrainedModel::transport_of(const Training& training) {
  if (training.devices != nullptr)
    return std::make_unique<DeviceTransport>(optimizer_, *training.devices, *training.gradients, world_.of_owners());
  return std::make_unique<HostTransport>(optimizer_, *training.gradients, world_.owners());
}

// Null: this rank is alone, with gradients of its own.
GradientExchange* TrainedModel::exchange() const {
  if (common_gradients_) return common_gradients_.get();
  return buckets_.get();
}

// Of what ranks have in common, what this one reads, writes and counts.
std::vector<FloatRange> TrainedModel::part_in_common() const {
  const engine::SharingRanks& ranks = common_->memory->ranks();
  return owned_floats(optimizer_.buckets(), ranks.place, ranks.count());
}

void TrainedModel::tell_assistants(const PassCommand& command) const {
  if (PassLead* const lead = live_.lead()) lead->tell(command);
}

void TrainedModel::enter_slot(int slot) {
  const int64_t place = slot - first_slot_;
  tell_assistants({.kind = PassCommand::Kind::kEnterSlot, .number = place});
  enter_own_slot(place);
}

void TrainedModel::enter_own_slot(int64_t place) {
  optimizer_.parameters().enter_slot(world_.mine().first + static_cast<int>(place));
}

double TrainedModel::step(double scale) {
  tell_assistants({.kind = PassCommand::Kind::kStep, .scale = scale});
  const double norm = optimizer_.step(scale);
  models::finish_work_on(transformer().device());  // others may read the weights
  return norm;
}

double TrainedModel::enter_iteration(int64_t iteration) {
  tell_assistants({.kind = PassCommand::Kind::kEnterIteration, .number = iteration});
  if (learning_rate_) optimizer_.set_learning_rate(learning_rate_->at(iteration));
  return optimizer_.learning_rate();
}

void TrainedModel::expect_last_backward() {
  tell_assistants({.kind = PassCommand::Kind::kLastBackward});
  if (GradientExchange* const ranks = exchange()) ranks->expect_last_backward();
}

// On several ranks the slots of a bucket are added when it is given to the others.
bool TrainedModel::add_up_slots() {
  tell_assistants({.kind = PassCommand::Kind::kAddUpSlots});
  models::FlatParameters& parameters = optimizer_.parameters();
  if (!parameters.take_entered()) return false;
  if (exchange() == nullptr) parameters.add_up_slots({0, parameters.size()});
  return true;
}

void TrainedModel::add_up_ranks(const std::function<void()>& done) {
  tell_assistants({.kind = PassCommand::Kind::kAddUpRanks});
  GradientExchange* const ranks = exchange();
  if (ranks == nullptr) return done();
  ranks->add_up(done);
}

// Where no step was made, as after a gradient that is not finite, all ranks have the weights: none makes one then.
void TrainedModel::bring_weights(const std::function<void()>& done) {
  tell_assistants({.kind = PassCommand::Kind::kBringWeights});
  GradientExchange* const ranks = exchange();
  if (ranks == nullptr || std::exchange(brought_, optimizer_.steps()) == optimizer_.steps()) return done();
  ranks->bring_weights(done);
}

void TrainedModel::prepare_snapshot() {
  snapshot_.prepare();
  if (PassLead* const lead = live_.lead()) lead->have_saved({.kind = PassCommand::Kind::kPrepareSnapshot});
}

void TrainedModel::take_snapshot(engine::VersionRange versions, engine::CheckpointCopy copy) {
  PassLead* const lead = live_.lead();
  if (lead == nullptr) return snapshot_.take(versions, copy);
  lead->do_together({.kind = PassCommand::Kind::kTakeSnapshot, .versions = versions, .copy = copy},
                    [&] { snapshot_.take(versions, copy); });
}

void TrainedModel::write_snapshot(const std::filesystem::path& source, const std::filesystem::path& folder, FileSystem& files) {
  PassLead* const lead = live_.lead();
  if (lead == nullptr) return snapshot_.write(name(), source, folder, files);
  auto others = std::async(std::launch::async, [&] {
    // Another process may be told of another folder of work.
    const std::string place = absolute_path(folder).string();
    lead->have_saved({.kind = PassCommand::Kind::kWriteSnapshot, .folder = place});
  });
  snapshot_.write(name(), source, folder, files);
  others.get();
}

void TrainedModel::restore(const std::filesystem::path& folder, engine::VersionRange versions) {
  const models::FlatParameters& parameters = optimizer_.parameters();
  const at::Tensor& weights = parameters.weight_buffer();
  const models::NamedTensors views = parameters.views(weights);
  saved_versions_.restart();
  for (int64_t version = versions.oldest; version < versions.newest; ++version) restore_version(views, version, folder);
  const auto pieces_of = [&](const at::Tensor& moments) {
    return parameters.pieces(models::packed_stretches(moments, optimizer_.owned()));
  };
  const std::vector<FloatRange> all{{0, parameters.size()}};
  meet();
  TrainingState state{.weights = parameters.pieces(models::stretches_of(weights, common_ ? part_in_common() : all)),
                      .first_moments = pieces_of(optimizer_.first_moments()),
                      .second_moments = pieces_of(optimizer_.second_moments())};
  read_training_state(state, views, folder, name());
  optimizer_.set_steps(state.steps);
  brought_ = state.steps;
  meet();
  publish_here(versions.newest);
}

// Of weights that ranks have in common one of them reads all, when all others have published what was there.
void TrainedModel::restore_version(const models::NamedTensors& weights, int64_t version, const std::filesystem::path& folder) {
  meet();
  if (!common_ || common_->memory->ranks().place == 0) read_version(weights, version, folder, name());
  meet();
  publish_here(version);
}

void TrainedModel::meet() const {
  if (common_) common_->memory->meet();
}

engine::ModelBytes TrainedModel::bytes() const {
  engine::ModelBytes bytes{.weights = 0,
                           .copies = snapshot_.bytes() + saved_versions_.bytes() + (buckets_ ? buckets_->bytes() : 0),
                           .gradients = gradient_bytes_,
                           .optimizer = optimizer_bytes_};
  if (!common_) return bytes;
  const int64_t floats_of_others = optimizer_.parameters().size() - floats_of(part_in_common());
  bytes.gradients += common_gradients_->passing_bytes();
  bytes.of_others = floats_of_others * static_cast<int64_t>(sizeof(int64_t));
  return bytes;
}

}  // namespace sluice::nodes
