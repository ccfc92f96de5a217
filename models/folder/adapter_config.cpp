#include "models/folder/adapter_config.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::models {
namespace {

// Keys that are read here or by who reads the tensors, and keys of training alone. Weights that were trained beside the factors
// (bias, modules_to_save, trainable_token_indices) are tensors of the file, and refused as such.
constexpr std::string_view kKnownKeys[] = {
    "alpha_pattern",
    "auto_mapping",
    "base_model_name_or_path",
    "bias",
    "corda_config",
    "ensure_weight_tying",
    "eva_config",
    "exclude_modules",
    "fan_in_fan_out",
    "inference_mode",
    "init_lora_weights",
    "layers_pattern",
    "layers_to_transform",
    "loftq_config",
    "lora_alpha",
    "lora_dropout",
    "lora_ga_config",
    "megatron_config",
    "megatron_core",
    "modules_to_save",
    "peft_type",
    "peft_version",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "revision",
    "runtime_config",
    "target_modules",
    "task_type",
    "trainable_token_indices",
    "use_rslora",
};

bool is_off(const Json& value) { return value.is_null() || value == false || value.empty(); }

// With the others PEFT takes a first change off the base when it makes the adapter, and again when it loads it.
void refuse_changed_base(const Json& config, const std::string& file) {
  constexpr std::string_view kLeaveTheBase[] = {"gaussian", "orthogonal", "eva", "mica"};
  if (!config.contains("init_lora_weights")) return;
  const Json& init = config["init_lora_weights"];
  if (init.is_null() || init.is_boolean()) return;
  const auto is_init = [&](std::string_view known) { return init.is_string() && init.get<std::string>() == known; };
  if (std::ranges::any_of(kLeaveTheBase, is_init)) return;
  throw UserError(file + ": init_lora_weights is " + init.dump() + ", with which the factors belong to a changed base model",
                  "save it with path_initial_model_for_weight_conversion of PEFT, or " + std::string(kMergeAdapter));
}

void refuse_unknown(const Json& config, const std::string& file) {
  for (const auto& [key, value] : config.items()) {
    if (std::ranges::find(kKnownKeys, key) != std::end(kKnownKeys) || is_off(value)) continue;
    const bool can_be_merged = key != "alora_invocation_tokens";  // which leaves the tokens before these alone
    throw UserError(file + ": " + key + " is " + value.dump() + ", and what the adapter computes with it is not supported",
                    can_be_merged ? kMergeAdapter : "an adapter that changes all tokens alike; this one cannot be merged either");
  }
}

// PEFT takes the keys of patterns as regular expressions of the end of a module's name, from a dot on. Plain names are.
bool means(const std::string& pattern, const std::string& module, const std::string& file) {
  const bool whole = pattern.starts_with('^');
  const std::string name = pattern.substr(whole ? 1 : 0);
  const bool plain = std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  if (!plain)
    throw UserError(file + ": the pattern " + sluice::quoted(pattern) + " is no name of a module, and expressions are not read",
                    "a key for each module that it means, such as " + sluice::quoted(module));
  return module == name || (!whole && module.ends_with("." + name));
}

// The value of the first pattern that means the module, else the common one.
Json value_for(const Json& config, const char* patterns, const char* common, const std::string& module, const std::string& file) {
  if (config.contains(patterns) && config[patterns].is_object()) {
    for (const auto& [key, value] : config[patterns].items())
      if (means(key, module, file)) return value;
  }
  return config.contains(common) ? config[common] : Json();
}

}  // namespace

AdapterConfig::AdapterConfig(const std::filesystem::path& file) : file_(file.string()), config_(read_json(file)) {
  if (!config_.is_object() || !config_.contains("peft_type") || config_["peft_type"] != "LORA")
    throw UserError(file_ + ": not the configuration of a LoRA adapter");
  refuse_changed_base(config_, file_);
  refuse_unknown(config_, file_);
}

double AdapterConfig::scale_of(const std::string& module) const {
  const Json rank = value_for(config_, "rank_pattern", "r", module, file_);
  const Json alpha = value_for(config_, "alpha_pattern", "lora_alpha", module, file_);
  if (!rank.is_number() || !alpha.is_number()) throw UserError(file_ + ": r and lora_alpha must be numbers");
  if (rank.get<double>() <= 0)
    throw UserError(file_ + ": the rank of " + module + " is " + rank.dump() + "; expected one above 0");
  const bool by_root = config_.contains("use_rslora") && config_["use_rslora"] == true;
  return alpha.get<double>() / (by_root ? std::sqrt(rank.get<double>()) : rank.get<double>());
}

}  // namespace sluice::models
