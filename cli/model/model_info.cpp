#include <algorithm>
#include <iostream>
#include <set>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/model/commands.h"
#include "cli/model/model_facts.h"
#include "cli/process/exit_codes.h"
#include "cli/terminal/terminal.h"
#include "models/config/config.h"
#include "models/folder/folder.h"
#include "models/folder/safetensors.h"
#include "models/layers/weight_names.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

const char* name_of(models::RopeScaling scaling) {
  switch (scaling) {
    case models::RopeScaling::kNone:
      return "default";
    case models::RopeScaling::kLinear:
      return "linear";
    case models::RopeScaling::kDynamic:
      return "dynamic";
    case models::RopeScaling::kYarn:
      return "yarn";
    case models::RopeScaling::kLlama3:
      return "llama3";
    case models::RopeScaling::kLongrope:
      return "longrope";
  }
  return "";
}

Json rope_of(const models::ModelConfig& config, int64_t which) {
  const models::RopeConfig& of = config.rope_at(which);
  Json rope = {{"type", name_of(of.scaling)}, {"theta", of.theta}, {"dimensions", config.rotary_dims(which)}};
  if (of.scaling != models::RopeScaling::kNone) {
    rope["factor"] = of.factor;
    rope["original_positions"] = of.original_positions;
  }
  return rope;
}

// That of all layers; else also, with how many layers they are of, the others, and how many layers do not turn.
Json rope_of(const models::ModelConfig& config) {
  if (config.learned_positions) return nullptr;
  Json rope = rope_of(config, 0);
  if (config.rope_of_layer.empty()) return rope;
  const auto layers = [&](int64_t which) { return std::ranges::count(config.rope_of_layer, which); };
  rope["others"] = Json::array();
  for (int64_t which = 1; which < config.ropes(); ++which) {
    rope["others"].push_back(rope_of(config, which));
    rope["others"].back()["layers"] = layers(which);
  }
  rope["unturned_layers"] = layers(models::kNoRope);
  return rope;
}

Json experts_of(const models::ExpertsConfig& experts) {
  if (!experts.any()) return nullptr;
  return {{"count", experts.count},
          {"per_token", experts.per_token},
          {"intermediate_size", experts.size},
          {"shared_intermediate_size", experts.shared_size},
          {"dense_layers", experts.dense_layers}};
}

bool has_chat_template(const fs::path& folder) {
  if (is_there(folder / "chat_template.jinja")) return true;
  const fs::path path = folder / "tokenizer_config.json";
  return is_there(path) && read_json(path).contains("chat_template");
}

// Why the weights do not fit config.json; null: they do, or there are none.
Json misfit_of(const fs::path& folder, models::Head head) {
  try {
    if (models::TensorFolder::is_in(folder)) models::check_weights(folder, head);
    return nullptr;
  } catch (const UserError& error) {
    return error.problems().front().message;
  }
}

// What the disk holds: nothing but zeros for a folder that only starts models without weights.
Json stored_of(const fs::path& folder, models::Head head) {
  std::set<std::string> dtypes;
  size_t bytes = 0, files = 0;
  if (models::TensorFolder::is_in(folder)) {
    const models::TensorFolder tensors(folder);
    files = tensors.files().size();
    for (const std::string& name : tensors.names()) {
      dtypes.insert(tensors.entry(name).dtype);
      bytes += tensors.entry(name).end - tensors.entry(name).begin;
    }
  }
  return {{"files", files}, {"bytes", bytes}, {"dtypes", dtypes}, {"misfit", misfit_of(folder, head)}};
}

Json info_of(const fs::path& folder) {
  const models::ModelConfig config = models::read_config(folder);
  const bool value_head = config.architecture.ends_with("ForSequenceClassification");
  const models::Head head = value_head ? models::Head::kValue : models::Head::kLanguageModel;
  return {{"family", config.model_type},
          {"architecture", config.architecture},
          {"head", value_head ? "value" : "language_model"},
          {"parameters", parameters_of(config, head)},
          {"active_parameters", parameters_of(config, head) - config.idle_parameters()},
          {"experts", experts_of(config.experts)},
          {"layers", config.layers},
          {"hidden_size", config.hidden_size},
          {"intermediate_size", config.intermediate_size},
          {"heads", config.heads},
          {"kv_heads", config.kv_heads},
          {"head_dim", config.head_dim},
          {"vocab_size", config.vocab_size},
          {"tied_embeddings", config.tied_embeddings},
          {"max_positions", config.max_positions},
          {"rope", rope_of(config)},
          {"windows", config.windows},
          {"end_of_sequence", config.end_of_sequence},
          {"chat_template", has_chat_template(folder)},
          {"stored", stored_of(folder, head)}};
}

std::string one_rope_text(const Json& rope, int64_t head_dim, int64_t max_positions) {
  std::string text = rope["type"].get<std::string>() + ", theta " + rope["theta"].dump();
  if (rope["dimensions"] != head_dim)
    text += ", " + rope["dimensions"].dump() + " of " + std::to_string(head_dim) + " dimensions";
  if (rope.contains("factor")) {
    text += ", stretched by " + rope["factor"].dump();
    if (rope["original_positions"] < max_positions) text += " from " + rope["original_positions"].dump() + " positions";
  }
  return text;
}

std::string rope_text(const Json& rope, int64_t head_dim, int64_t max_positions) {
  if (rope.is_null()) return "none: learned positions";
  std::string text = one_rope_text(rope, head_dim, max_positions);
  if (!rope.contains("others")) return text;
  for (const Json& other : rope["others"])
    text += "; in " + plural(other["layers"].get<int64_t>(), "layer") + " " + one_rope_text(other, head_dim, max_positions);
  if (const auto unturned = rope["unturned_layers"].get<int64_t>(); unturned > 0)
    text += "; none in " + plural(unturned, "layer");
  return text;
}

// "layers 0, 2"
std::string layers_text(const std::vector<std::string>& layers) {
  return (layers.size() == 1 ? "layer " : "layers ") + join(layers, ", ");
}

std::string experts_text(const Json& info) {
  const Json& experts = info["experts"];
  std::string text = experts["per_token"].dump() + " of " + experts["count"].dump() + " for each token, intermediate size " +
                     experts["intermediate_size"].dump();
  if (experts["shared_intermediate_size"] != 0) text += "; a shared one of " + experts["shared_intermediate_size"].dump();
  std::vector<std::string> dense;
  for (const Json& layer : experts["dense_layers"]) dense.push_back(layer.dump());
  if (!dense.empty()) text += "; an MLP of " + info["intermediate_size"].dump() + " instead in " + layers_text(dense);
  return text + "; " + human_count(info["active_parameters"].get<double>()) + " parameters a token";
}

// "16 tokens in layers 0, 2"; in all layers without naming them.
std::string windows_text(const Json& windows) {
  int64_t window = 0;
  std::vector<std::string> layers;
  for (size_t i = 0; i < windows.size(); ++i) {
    if (windows[i] == 0) continue;
    window = windows[i].get<int64_t>();
    layers.push_back(std::to_string(i));
  }
  if (layers.empty()) return "none";
  return plural(window, "token") + " in " + (layers.size() == windows.size() ? "all layers" : layers_text(layers));
}

std::string stored_text(const Json& stored) {
  if (stored["files"] == 0) return "no weights: init = \"random\" starts without";
  return join(stored["dtypes"].get<std::vector<std::string>>(), ", ") + ", " + human_bytes(stored["bytes"].get<double>()) +
         " in " + plural(stored["files"].get<int64_t>(), "file");
}

std::string ids_text(const Json& ids) {
  std::vector<std::string> texts;
  for (const Json& id : ids) texts.push_back(id.dump());
  return texts.empty() ? "none" : join(texts, ", ");
}

void print_lines(const Json& info) {
  const auto line = [](std::string name, const std::string& value) {
    name.resize(17, ' ');
    std::cout << name << printable(value) << "\n";
  };
  line("family", info["family"].get<std::string>() + " (" + info["architecture"].get<std::string>() + ")");
  line("parameters", info["parameters"].dump() + " (" + human_count(info["parameters"].get<double>()) + ")");
  line("layers", info["layers"].dump() + " of hidden size " + info["hidden_size"].dump() +
                     (info["experts"].is_null() ? ", intermediate size " + info["intermediate_size"].dump() : ""));
  if (!info["experts"].is_null()) line("experts", experts_text(info));
  line("heads",
       info["heads"].dump() + " of queries, " + info["kv_heads"].dump() + " of keys and values, size " + info["head_dim"].dump());
  line("positions", info["max_positions"].dump());
  line("rope", rope_text(info["rope"], info["head_dim"].get<int64_t>(), info["max_positions"].get<int64_t>()));
  line("window", windows_text(info["windows"]));
  line("vocabulary", info["vocab_size"].dump() + (info["tied_embeddings"] == true ? ", tied embeddings" : ", untied embeddings"));
  line("end of sequence", ids_text(info["end_of_sequence"]));
  line("chat template", info["chat_template"] == true ? "yes" : "no");
  line("on disk", stored_text(info["stored"]));
  if (const Json& misfit = info["stored"]["misfit"]; !misfit.is_null())
    line("misfit", misfit.get<std::string>() + "; rlhf-run model verify names all");
}

}  // namespace

int model_info(const fs::path& folder, bool json) {
  const Json info = info_of(folder);
  if (json) {
    print_text(info.dump(2) + "\n");
  } else {
    print_lines(info);
  }
  return kDone;
}

}  // namespace sluice::cli
