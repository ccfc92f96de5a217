#include "models/folder/adapter_folder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files/folder.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "models/adapters/lora.h"
#include "models/folder/safetensors.h"
#include "models/folder/safetensors_writer.h"
#include "models/layers/weight_names.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

constexpr const char* kConfigFile = "adapter_config.json";
constexpr const char* kTensorFile = "adapter_model.safetensors";
constexpr const char* kPrefix = "base_model.model.";
constexpr const char* kValueHead = "base_model.model.score.weight";

// A tensor of a model's file with the adapters of the matrices that it is made of, in their order; undefined where one has none.
struct Module {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  bool transposed = false;
  std::vector<Adapter> adapters;
  std::vector<int64_t> outputs;

  int64_t rank() const {
    int64_t sum = 0;
    for (const Adapter& adapter : adapters) sum += adapter.defined() ? adapter.a.size(0) : 0;
    return sum;
  }

  double scale() const {
    const auto first = std::find_if(adapters.begin(), adapters.end(), [](const Adapter& adapter) { return adapter.defined(); });
    return first->scale;
  }

  std::string a_name() const { return kPrefix + name + ".lora_A.weight"; }
  std::string b_name() const { return kPrefix + name + ".lora_B.weight"; }
};

// Those that have an adapter.
std::vector<Module> modules_of(Weights weights) {
  std::map<const at::Tensor*, Adapter> adapters;
  for (const AdaptableMatrix& matrix : adaptable_matrices(weights)) adapters[matrix.weight] = *matrix.adapter;
  std::vector<Module> modules;
  for (const StoredSlot& slot : stored_slots(weights)) {
    Module module{.name = module_name(slot.name), .transposed = slot.transposed, .adapters = {}, .outputs = {}};
    for (const at::Tensor* part : slot.parts) {
      module.adapters.push_back(adapters[part]);
      module.outputs.push_back(part->defined() ? part->size(0) : 0);
    }
    if (module.rank() > 0) modules.push_back(std::move(module));
  }
  return modules;
}

at::Tensor joined_a(const Module& module) {
  std::vector<at::Tensor> factors;
  for (const Adapter& adapter : module.adapters) {
    if (adapter.defined()) factors.push_back(adapter.a.detach());
  }
  return at::cat(factors);
}

// Calls visit(block, adapter) with the place of each factor b in `joined` [all outputs, all ranks].
template <class Visit>
void for_each_block(const Module& module, const at::Tensor& joined, const Visit& visit) {
  int64_t row = 0, column = 0;
  for (size_t i = 0; i < module.adapters.size(); row += module.outputs[i], ++i) {
    const Adapter& adapter = module.adapters[i];
    if (!adapter.defined()) continue;
    const int64_t rank = adapter.a.size(0);
    visit(joined.narrow(0, row, module.outputs[i]).narrow(1, column, rank), adapter);
    column += rank;
  }
}

at::Tensor joined_b(const Module& module) {
  int64_t outputs = 0;
  for (const int64_t count : module.outputs) outputs += count;
  const at::Tensor joined = at::zeros({outputs, module.rank()}, at::kFloat);
  for_each_block(module, joined, [](const at::Tensor& block, const Adapter& adapter) { block.copy_(adapter.b); });
  return joined;
}

// "self_attn.q_proj": the name within its layer, by which PEFT finds the module in every layer.
std::string target_of(const std::string& module) {
  size_t begin = 0;
  for (size_t dot = module.find('.'); dot != std::string::npos; dot = module.find('.', dot + 1)) {
    const size_t end = std::min(module.find('.', dot + 1), module.size());
    const bool number = end > dot + 1 && module.find_first_not_of("0123456789", dot + 1) == end;
    if (number) begin = end + 1;
  }
  return module.substr(begin);
}

// How often a module of the names within their layers is there.
std::map<std::string, int> counts_of(const std::vector<std::string>& modules) {
  std::map<std::string, int> counts;
  for (const std::string& module : modules) ++counts[target_of(module)];
  return counts;
}

// By which PEFT finds these modules and no others: their names within the layers, or whole names where some layers have no
// adapter.
std::vector<std::string> targets_of(const std::vector<Module>& modules, const Weights& weights) {
  std::vector<std::string> adapted, there;
  for (const Module& module : modules) adapted.push_back(module.name);
  for (const StoredSlot& slot : stored_slots(weights))
    if (slot.name.ends_with(".weight")) there.push_back(module_name(slot.name));
  const auto with_adapter = counts_of(adapted), all = counts_of(there);
  std::vector<std::string> targets;
  for (const std::string& name : adapted) {
    const std::string within = target_of(name);
    targets.push_back(with_adapter.at(within) == all.at(within) ? within : name);
  }
  return targets;
}

Json config_of(const std::vector<Module>& modules, const std::vector<std::string>& target_of_module, const fs::path& base,
               bool value_head) {
  int64_t rank = modules.front().rank();
  for (const Module& module : modules) rank = std::min(rank, module.rank());
  const double scale = modules.front().scale();
  std::set<std::string> targets;
  Json ranks = Json::object(), alphas = Json::object();
  bool transposed = false;
  for (size_t i = 0; i < modules.size(); ++i) {
    const Module& module = modules[i];
    const std::string& target = target_of_module[i];
    targets.insert(target);
    transposed = transposed || module.transposed;
    if (module.rank() == rank) continue;
    ranks[target] = module.rank();
    alphas[target] = scale * static_cast<double>(module.rank());
  }
  return {{"peft_type", "LORA"},
          {"task_type", value_head ? "SEQ_CLS" : "CAUSAL_LM"},
          {"base_model_name_or_path", absolute_path(base).lexically_normal().string()},  // wherever it is read
          {"r", rank},
          {"lora_alpha", scale * static_cast<double>(rank)},
          {"lora_dropout", 0.0},
          {"bias", "none"},
          {"target_modules", targets},
          {"rank_pattern", ranks},
          {"alpha_pattern", alphas},
          {"modules_to_save", value_head ? Json::array({"score"}) : Json(nullptr)},
          {"fan_in_fan_out", transposed},
          {"init_lora_weights", true},
          {"use_rslora", false},
          {"use_dora", false},
          {"inference_mode", true}};
}

// PEFT's rule: the pattern that is the end of the module's name from a dot on, else the common value.
Json value_for(const Json& config, const char* patterns, const char* common, const std::string& module) {
  if (config.contains(patterns) && config[patterns].is_object()) {
    for (const auto& [key, value] : config[patterns].items()) {
      if (module == key || module.ends_with("." + key)) return value;
    }
  }
  return config.contains(common) ? config[common] : Json();
}

void check_scale(const Json& config, const Module& module, const std::string& file) {
  const Json rank = value_for(config, "rank_pattern", "r", module.name);
  const Json alpha = value_for(config, "alpha_pattern", "lora_alpha", module.name);
  if (!rank.is_number() || !alpha.is_number()) throw UserError(file + ": r and lora_alpha must be numbers");
  const bool by_root = config.contains("use_rslora") && config["use_rslora"] == true;
  const double divisor = by_root ? std::sqrt(rank.get<double>()) : rank.get<double>(), scale = alpha.get<double>() / divisor;
  if (std::abs(scale - module.scale()) <= 1e-9 * std::abs(scale)) return;
  throw UserError(file + ": the change of " + module.name + " counts " + real_text(scale) + " times, here " +
                      real_text(module.scale()) + " times (alpha / rank)",
                  "the same rank and alpha as in that file");
}

void copy_blocks(const Module& module, const at::Tensor& a, const at::Tensor& b, const std::string& file) {
  int64_t row = 0;
  const at::Tensor rest = b.clone();
  for (const Adapter& adapter : module.adapters) {
    if (!adapter.defined()) continue;
    adapter.a.copy_(a.narrow(0, row, adapter.a.size(0)));
    row += adapter.a.size(0);
  }
  for_each_block(module, b, [](const at::Tensor& block, const Adapter& adapter) { adapter.b.copy_(block); });
  for_each_block(module, rest, [](const at::Tensor& block, const Adapter&) { block.zero_(); });
  if (rest.count_nonzero().item<int64_t>() == 0) return;
  throw UserError(file + ": the parts of " + module.name + " share their factors",
                  "here each part has its own; train such an adapter on from the merged model");
}

}  // namespace

void write_adapter(const Transformer& model, const fs::path& base, const fs::path& folder, FileSystem& files) {
  const at::NoGradGuard no_gradient;
  const Weights& weights = model.weights();
  const std::vector<Module> modules = modules_of(weights);
  SLUICE_CHECK(!modules.empty(), "a model without adapters");
  const bool critic = weights.value_head.defined() && !weights.head.defined();
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const Module& module : modules) {
    tensors.emplace_back(module.a_name(), joined_a(module));
    tensors.emplace_back(module.b_name(), joined_b(module));
  }
  if (weights.value_head.defined()) tensors.emplace_back(kValueHead, weights.value_head);
  make_folders(folder, files);
  write_text(folder / kConfigFile, config_of(modules, targets_of(modules, weights), base, critic).dump(2) + "\n", files);
  write_safetensors(folder / kTensorFile, tensors, files);
  sync_folder(folder, files);
}

void read_adapter(Weights& weights, const fs::path& folder) {
  const at::NoGradGuard no_gradient;
  const std::string config_file = (folder / kConfigFile).string();
  const Json config = read_json(folder / kConfigFile);
  if (!config.is_object() || !config.contains("peft_type") || config["peft_type"] != "LORA") {
    throw UserError(config_file + ": not the configuration of a LoRA adapter");
  }
  const TensorFolder tensors = TensorFolder::of_file(folder / kTensorFile);
  std::set<std::string> known;
  for (const Module& module : modules_of(weights)) {
    check_scale(config, module, config_file);
    const at::Tensor expected = joined_b(module);
    const int64_t inputs = joined_a(module).size(1);
    const at::Tensor a = tensors.read(module.a_name(), {module.rank(), inputs}),
                     b = tensors.read(module.b_name(), expected.sizes());
    copy_blocks(module, a, b, tensors.file_of(module.b_name()));
    known.insert({module.a_name(), module.b_name()});
  }
  if (weights.value_head.defined() && tensors.contains(kValueHead)) {
    weights.value_head.copy_(tensors.read(kValueHead, weights.value_head.sizes()));
  }
  known.insert(kValueHead);
  for (const std::string& name : tensors.names()) {
    if (!known.contains(name))
      throw UserError(tensors.file_of(name) + ": " + sluice::quoted(name) + " is of no target", "name it in targets");
  }
}

}  // namespace sluice::models
