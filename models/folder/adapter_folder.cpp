#include "models/folder/adapter_folder.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/files/folder.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "models/adapters/lora.h"
#include "models/folder/adapter_config.h"
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
  bool shared = false;  // in the file one factor a is that of all parts, and the factors b lie one below the other

  int64_t rank() const {
    if (shared) return first().a.size(0);
    int64_t sum = 0;
    for (const Adapter& adapter : adapters) sum += adapter.defined() ? adapter.a.size(0) : 0;
    return sum;
  }

  int64_t all_outputs() const { return std::accumulate(outputs.begin(), outputs.end(), int64_t{0}); }

  /// Of the factors in the file.
  std::vector<int64_t> a_shape() const { return {rank(), first().a.size(1)}; }
  std::vector<int64_t> b_shape() const { return {all_outputs(), rank()}; }

  double scale() const { return first().scale; }

  const Adapter& first() const {
    return *std::find_if(adapters.begin(), adapters.end(), [](const Adapter& adapter) { return adapter.defined(); });
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

// Calls visit(block, adapter) with the place of each factor b in `joined`, which has b_shape().
template <class Visit>
void for_each_block(const Module& module, const at::Tensor& joined, const Visit& visit) {
  int64_t row = 0, column = 0;
  for (size_t i = 0; i < module.adapters.size(); row += module.outputs[i], ++i) {
    const Adapter& adapter = module.adapters[i];
    if (!adapter.defined()) continue;
    const int64_t rank = adapter.a.size(0);
    visit(joined.narrow(0, row, module.outputs[i]).narrow(1, column, rank), adapter);
    if (!module.shared) column += rank;
  }
}

at::Tensor joined_b(const Module& module) {
  const at::Tensor joined = at::zeros(module.b_shape(), at::kFloat);
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

void require_scale(const AdapterConfig& config, const Module& module, const std::string& file) {
  const double scale = config.scale_of(module.name);
  if (std::abs(scale - module.scale()) <= 1e-9 * std::abs(scale)) return;
  throw UserError(file + ": the change of " + module.name + " counts " + real_text(scale) + " times, here " +
                      real_text(module.scale()) + " times (alpha / rank)",
                  "the same rank and alpha as in that file");
}

// A module of which `tensors` has factors; empty: of none.
std::string adapted_module(const TensorFolder& tensors) {
  constexpr std::string_view kPrefixText = kPrefix, kFactor = ".lora_A.weight";
  for (const std::string& name : tensors.names()) {
    if (name.starts_with(kPrefixText) && name.ends_with(kFactor))
      return name.substr(kPrefixText.size(), name.size() - kPrefixText.size() - kFactor.size());
  }
  return {};
}

void require_factor(const TensorFolder& tensors, const std::string& name, const std::vector<int64_t>& shape) {
  if (!tensors.contains(name)) {
    const std::string some = adapted_module(tensors);
    throw UserError(tensors.file_of(name) + ": " + tensors.problem_with(name, shape),
                    some.empty() ? "an adapter as PEFT saves it"
                                 : "targets that mean the matrices which the file has, such as " + sluice::quoted(some));
  }
  if (tensors.entry(name).shape != shape) {
    throw UserError(tensors.file_of(name) + ": " + sluice::quoted(name) + " has shape " + shape_text(tensors.entry(name).shape) +
                        "; with this rank it would have " + shape_text(shape),
                    "the rank of that adapter, and the model that it was made for");
  }
  if (const std::string problem = tensors.problem_with(name, shape); !problem.empty())
    throw UserError(tensors.file_of(name) + ": " + problem);
}

[[noreturn]] void refuse_left_over(const std::string& name, const std::string& file) {
  const bool factor = name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight");
  if (factor) {
    throw UserError(file + ": " + sluice::quoted(name) + " is of no target",
                    "name it in targets; where it is no matrix of a layer, " + std::string(kMergeAdapter));
  }
  throw UserError(file + ": " + sluice::quoted(name) + " is no factor of a matrix, and nothing else is read of an adapter",
                  kMergeAdapter);
}

// The factors of this module are those of one adapter, as PEFT makes it, where its rank says so.
Module as_stored(Module module, const TensorFolder& tensors) {
  const std::string name = module.a_name();
  if (!tensors.contains(name)) return module;
  const std::vector<int64_t>& shape = tensors.entry(name).shape;
  module.shared = !shape.empty() && shape[0] == module.first().a.size(0);
  return module;
}

// Of a tensor of several parts the file may have more than the factors of the parts that have one here.
void require_blocks(const TensorFolder& tensors, const Module& module) {
  if (module.adapters.size() == 1) return;
  const at::Tensor rest = tensors.read(module.b_name(), module.b_shape());
  for_each_block(module, rest, [](const at::Tensor& block, const Adapter&) { block.zero_(); });
  if (rest.count_nonzero().item<int64_t>() == 0) return;
  const std::string file = tensors.file_of(module.b_name());
  if (!module.shared)
    throw UserError(
        file + ": the parts of " + module.name + " share their factors, which are of rank " + std::to_string(module.rank()),
        "rank = " + std::to_string(module.rank()) + " and alpha = " +
            real_text(module.scale() * static_cast<double>(module.rank())) + ", so that each part begins with all of them");
  throw UserError(file + ": the adapter of " + module.name + " changes parts of it that have none here",
                  "targets that mean all its parts: " + sluice::quoted(module.name.substr(module.name.rfind('.') + 1)));
}

void copy_blocks(const Module& module, const at::Tensor& a, const at::Tensor& b) {
  int64_t row = 0;
  for (const Adapter& adapter : module.adapters) {
    if (!adapter.defined()) continue;
    adapter.a.copy_(a.narrow(0, row, adapter.a.size(0)));
    if (!module.shared) row += adapter.a.size(0);
  }
  for_each_block(module, b, [](const at::Tensor& block, const Adapter& adapter) { adapter.b.copy_(block); });
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

void check_adapter(const Weights& weights, const fs::path& folder) {
  const std::string config_file = (folder / kConfigFile).string();
  const AdapterConfig config(folder / kConfigFile);
  const TensorFolder tensors = TensorFolder::of_file(folder / kTensorFile);
  std::set<std::string> known{kValueHead};
  for (const Module& whole : modules_of(weights)) {
    const Module module = as_stored(whole, tensors);
    require_scale(config, module, config_file);
    require_factor(tensors, module.a_name(), module.a_shape());
    require_factor(tensors, module.b_name(), module.b_shape());
    require_blocks(tensors, module);
    known.insert({module.a_name(), module.b_name()});
  }
  for (const std::string& name : tensors.names())
    if (!known.contains(name)) refuse_left_over(name, tensors.file_of(name));
}

void read_adapter(Weights& weights, const fs::path& folder) {
  const at::NoGradGuard no_gradient;
  check_adapter(weights, folder);
  const TensorFolder tensors = TensorFolder::of_file(folder / kTensorFile);
  for (const Module& whole : modules_of(weights)) {
    const Module module = as_stored(whole, tensors);
    copy_blocks(module, tensors.read(module.a_name(), module.a_shape()), tensors.read(module.b_name(), module.b_shape()));
  }
  if (weights.value_head.defined() && tensors.contains(kValueHead))
    weights.value_head.copy_(tensors.read(kValueHead, weights.value_head.sizes()));
}

}  // namespace sluice::models
