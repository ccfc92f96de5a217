#include "nodes/models/language_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "nodes/models/snapshot_files.h"

namespace sluice::nodes {
namespace {

int64_t bytes_of(const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

}  // namespace

LanguageModel::LanguageModel(std::string name, std::filesystem::path folder, models::Transformer transformer,
                             std::optional<models::AdamWOptions> optimizer, int64_t kept_versions, models::Precision precision,
                             int64_t saved_versions)
    : text_(std::move(name), std::move(folder)),
      precision_(precision),
      transformer_(std::move(transformer)),
      published_(transformer_.weights(), transformer_.weights().head.defined() ? kept_versions : 0, precision) {
  if (optimizer) optimizer_.emplace(transformer_.weights().trainable(), *optimizer);
  weight_bytes_ = bytes_of(transformer_.weights().named());
  if (!optimizer_) return;
  const models::FlatParameters& parameters = optimizer_->parameters();
  optimizer_bytes_ = 2 * bytes_of(parameters.views(parameters.weight_buffer()));
  for (const auto& [name, weight] : transformer_.weights().trainable()) gradient_bytes_ += static_cast<int64_t>(weight.nbytes());
  // One more than a snapshot wants: one that is taken after a publication wants those before it.
  saved_versions_.emplace(saved_versions > 0 ? saved_versions + 1 : 0, parameters.size());
  saved_versions_->keep(0, parameters.weight_buffer());
  snapshot_.emplace(transformer_, *optimizer_, *saved_versions_);
}

engine::ModelBytes LanguageModel::bytes() const {
  const int64_t copies = snapshot_ ? snapshot_->bytes() + saved_versions_->bytes() : 0;
  return {.weights = weight_bytes_ + published_.packed_bytes(),
          .copies = copies,
          .gradients = gradient_bytes_,
          .optimizer = optimizer_bytes_};
}

void LanguageModel::set_learning_rate(const models::LearningRate& rate) { learning_rate_ = rate; }

double LanguageModel::enter_iteration(int64_t iteration) {
  SLUICE_CHECK(optimizer_.has_value(), "a learning rate of a frozen model: " + name());
  if (learning_rate_) optimizer_->set_learning_rate(learning_rate_->at(iteration));
  return optimizer_->learning_rate();
}

void LanguageModel::publish(int64_t version) {
  if (saved_versions_) saved_versions_->keep(version, optimizer_->parameters().weight_buffer());
  published_.publish(version);
}

void LanguageModel::prepare_snapshot() {
  SLUICE_CHECK(snapshot_.has_value(), "a snapshot of a frozen model: " + name());
  snapshot_->prepare();
}

void LanguageModel::take_snapshot(engine::VersionRange versions) {
  SLUICE_CHECK(snapshot_.has_value(), "a snapshot of a frozen model: " + name());
  snapshot_->take(versions);
}

void LanguageModel::write_snapshot(const std::filesystem::path& folder, FileSystem& files) {
  SLUICE_CHECK(snapshot_.has_value(), "a snapshot of a frozen model: " + name());
  snapshot_->write(name(), text_.folder(), saved_adapter_, folder, files);
}

void LanguageModel::restore(const std::filesystem::path& folder, engine::VersionRange versions) {
  SLUICE_CHECK(optimizer_.has_value(), "a frozen model has nothing to restore: " + name());
  const models::FlatParameters& parameters = optimizer_->parameters();
  TrainingState state{.weights = parameters.views(parameters.weight_buffer()),
                      .first_moments = parameters.views(optimizer_->first_moments()),
                      .second_moments = parameters.views(optimizer_->second_moments())};
  published_.restart();
  saved_versions_->clear();
  for (int64_t version = versions.oldest; version < versions.newest; ++version) {
    read_version(state.weights, version, folder, name());
    publish(version);
  }
  read_training_state(state, folder, name());
  optimizer_->set_steps(state.steps);
  publish(versions.newest);
}

std::shared_ptr<LanguageModel> language_model(const engine::NodeResources& resources, const std::string& name) {
  const auto found = resources.models.find(name);
  SLUICE_CHECK(found != resources.models.end(), "node " + resources.node + " was not given model " + name);
  const auto model = std::dynamic_pointer_cast<LanguageModel>(found->second);
  SLUICE_CHECK(model != nullptr, "model " + name + " is of another class");
  return model;
}

}  // namespace sluice::nodes
