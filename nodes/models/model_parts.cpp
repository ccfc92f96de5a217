#include "nodes/models/model_parts.h"

#include "base/error.h"
#include "nodes/models/language_model.h"

namespace sluice::nodes {
namespace {

template <class T>
std::shared_ptr<T> model_as(const engine::NodeResources& resources, const std::string& name, const char* is_not) {
  const auto found = resources.models.find(name);
  SLUICE_CHECK(found != resources.models.end(), "node " + resources.node + " was not given model " + name);
  auto model = std::dynamic_pointer_cast<T>(found->second);
  SLUICE_CHECK(model != nullptr, "node " + resources.node + " works with model " + name + ", which " + is_not);
  return model;
}

std::shared_ptr<LanguageModel> language_model(const engine::NodeResources& resources, const std::string& name) {
  return model_as<LanguageModel>(resources, name, "is of another class");
}

}  // namespace

std::shared_ptr<const ModelText> model_text(const engine::NodeResources& resources, const std::string& name) {
  const auto model = language_model(resources, name);
  return {model, &model->text()};
}

std::shared_ptr<const ForwardModel> forward_model(const engine::NodeResources& resources, const std::string& name) {
  const auto model = language_model(resources, name);
  SLUICE_CHECK(
      model->forward().has_weights() || model->forward().asked() != nullptr,
      "model " + name + " is only sampled from, by what node " + resources.node + " says of itself: it has no live weights");
  return {model, &model->forward()};
}

std::shared_ptr<const SampledWeights> sampled_weights(const engine::NodeResources& resources, const std::string& name) {
  const auto model = language_model(resources, name);
  return {model, &model->sampled()};
}

std::shared_ptr<TrainedModel> trained_model(const engine::NodeResources& resources, const std::string& name) {
  const auto model = model_as<TrainedLanguageModel>(resources, name, "is not trained");
  return {model, &model->trained()};
}

std::shared_ptr<WeightPublisher> weight_publisher(const engine::NodeResources& resources, const std::string& name) {
  const auto model = trained_model(resources, name);
  return {model, &model->publisher()};
}

}  // namespace sluice::nodes
