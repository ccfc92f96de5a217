#include "cli/checkpoints/generation_config.h"

#include <algorithm>
#include <optional>

#include "base/files/path_kind.h"
#include "models/config/config.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

// The first that does not always take the likeliest token: paths that measure often do.
std::optional<RecordedPipeline::Node> rollout_of(const RecordedPipeline& pipeline, const std::string& model,
                                                 const engine::Registry& registry) {
  std::optional<RecordedPipeline::Node> greedy;
  for (const RecordedPipeline::Node& node : pipeline.nodes()) {
    if (node.type != "generate" || pipeline.text(node.table(), "model") != model) continue;
    if (pipeline.last_number(node.table(), "temperature", 1.0, registry) > 0) return node;
    if (!greedy) greedy = node;
  }
  return greedy;
}

void add_sampling(const RecordedPipeline& pipeline, const RecordedPipeline::Node& node, const engine::Registry& registry,
                  Json& config) {
  const double temperature = pipeline.last_number(node.table(), "temperature", 1.0, registry);
  config["do_sample"] = temperature > 0;
  for (const char* key : {"temperature", "top_p", "top_k"}) config.erase(key);
  if (temperature > 0) {
    config["temperature"] = temperature;
    config["top_p"] = pipeline.number(node.table(), "top_p", 1.0);
    config["top_k"] = static_cast<int64_t>(pipeline.number(node.table(), "top_k", 0));  // 0: all; without the key it is 50
  }
  for (const auto& [key, neutral] : {std::pair{"min_p", 0.0}, std::pair{"repetition_penalty", 1.0}}) {
    config.erase(key);
    const double value = pipeline.number(node.table(), key, neutral);
    if (value != neutral && (temperature > 0 || key != std::string_view("min_p"))) config[key] = value;
  }
}

void add_end_of_sequence(const fs::path& folder, const text::Tokenizer& tokenizer, Json& config) {
  std::vector<int64_t> ids = models::read_config(folder).end_of_sequence;
  if (const auto id = tokenizer.end_of_sequence(); id && std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
  if (ids.size() == 1) config["eos_token_id"] = ids.front();
  if (ids.size() > 1) config["eos_token_id"] = ids;
}

void add_special_id(const fs::path& folder, const text::Tokenizer& tokenizer, const std::string& name, Json& config) {
  const std::string key = name + "_token_id";
  if (config.contains(key) && !config[key].is_null()) return;
  const Json model = read_json(folder / "config.json");
  if (model.is_object() && model.contains(key) && model[key].is_number_integer()) {
    config[key] = model[key];
    return;
  }
  const Json tokens = text::special_tokens_of(folder);
  const auto token = tokens.find(name + "_token");
  if (token == tokens.end()) return;
  if (const auto id = tokenizer.token_to_id(token->get<std::string>())) config[key] = *id;
}

}  // namespace

Json generation_config(const fs::path& folder, const RecordedPipeline& pipeline, const std::string& model,
                       const engine::Registry& registry) {
  const fs::path file = folder / "generation_config.json";
  Json config = is_there(file) ? read_json(file) : Json::object();
  if (!config.is_object()) config = Json::object();
  if (is_there(text::tokenizer_file_in(folder))) {
    const text::Tokenizer tokenizer = text::Tokenizer::load(folder);
    add_end_of_sequence(folder, tokenizer, config);
    for (const char* name : {"bos", "pad"}) add_special_id(folder, tokenizer, name, config);
  }
  if (const auto node = rollout_of(pipeline, model, registry)) add_sampling(pipeline, *node, registry, config);
  return config;
}

}  // namespace sluice::cli
