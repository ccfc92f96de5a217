#include <map>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/folder.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "models/adapters/lora.h"
#include "models/config/config_families.h"
#include "models/folder/adapter_folder.h"
#include "models/folder/folder.h"
#include "models/folder/safetensors_writer.h"
#include "models/layers/weight_names.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

constexpr const char* kCopiedFiles[] = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "generation_config.json",
                                        "vocab.json",
                                        "merges.txt",
                                        "tokenizer.model",
                                        "spiece.model",
                                        "added_tokens.json",
                                        "chat_template.jinja",
                                        "chat_template.json"};

const char* dtype_text(at::ScalarType dtype) {
  if (dtype == at::kBFloat16) return "bfloat16";
  return dtype == at::kHalf ? "float16" : "float32";
}

// The source's config.json with what differs in the saved model.
std::string saved_config(const Transformer& model, const fs::path& source_folder, at::ScalarType dtype) {
  Json config = read_json(source_folder / "config.json");
  const bool value_head = model.weights().value_head.defined(), critic = value_head && !model.weights().head.defined();
  SLUICE_CHECK(model.config().family != nullptr, "a model of no family has no folder");
  const Family& family = *model.config().family;
  config.erase("quantization_config");  // of the source: what is written are values
  config["architectures"] = Json::array({critic ? family.value_class : family.language_class});
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = dtype_text(dtype);
  if (value_head) {
    config["num_labels"] = 1;
    config["id2label"] = {{"0", "LABEL_0"}};
    config["label2id"] = {{"LABEL_0", 0}};
  }
  return config.dump(2) + "\n";
}

// Parts of one tensor of the file come together again.
std::vector<OutputTensor> stored_tensors(Weights weights) {
  std::map<const at::Tensor*, Adapter> adapters;
  for (const AdaptableMatrix& matrix : adaptable_matrices(weights)) adapters[matrix.weight] = *matrix.adapter;
  std::vector<OutputTensor> tensors;
  for (const StoredSlot& slot : stored_slots(weights)) {
    const bool tied = slot.parts.front() == &weights.head && weights.head.is_same(weights.embedding);
    if (!slot.parts.front()->defined() || tied) continue;
    tensors.push_back({.name = slot.name, .parts = {}, .adapters = {}, .transposed = slot.transposed});
    for (const at::Tensor* part : slot.parts) {
      tensors.back().parts.push_back(*part);
      tensors.back().adapters.push_back(adapters[part]);
    }
  }
  return tensors;
}

// In the form that is saved.
SavedAdapter adapter_of(const Transformer& model, const SaveOptions& options) {
  return has_adapters(model.weights()) ? options.adapter : SavedAdapter::kMerged;
}

WriteOptions write_options(const Transformer& model, const SaveOptions& options) {
  return {.dtype = options.dtype.value_or(model.weights().final_norm.scalar_type()),
          .max_file_bytes = options.max_shard_bytes,
          .share = options.share};
}

void write_small_files(const Transformer& model, const fs::path& source_folder, const fs::path& folder,
                       const SaveOptions& options, FileSystem& files) {
  for (const char* name : kCopiedFiles) {
    if (is_there(source_folder / name)) write_text(folder / name, read_file(source_folder / name), files);
  }
  const SavedAdapter adapter = adapter_of(model, options);
  if (adapter == SavedAdapter::kBoth) write_adapter(model, source_folder, folder / "adapter", files);
  if (adapter == SavedAdapter::kAdapter) return write_adapter(model, source_folder, folder, files);
  write_text(folder / "config.json", saved_config(model, source_folder, write_options(model, options).dtype), files);
}

}  // namespace

bool writes_folder(const Transformer& model, const SaveOptions& options) {
  if (options.share.writer == 0) return true;
  if (adapter_of(model, options) == SavedAdapter::kAdapter) return false;
  const size_t count = count_model_files(stored_tensors(model.weights()), write_options(model, options));
  return static_cast<size_t>(options.share.writer) < count;
}

void write_folder(const Transformer& model, const fs::path& source_folder, const fs::path& folder, const SaveOptions& options,
                  FileSystem& files) {
  make_folders(folder, files);
  if (options.share.writer == 0) write_small_files(model, source_folder, folder, options, files);
  if (adapter_of(model, options) != SavedAdapter::kAdapter)
    write_model_files(folder, stored_tensors(model.weights()), write_options(model, options), files);
  sync_folder(folder, files);
}

}  // namespace sluice::models
