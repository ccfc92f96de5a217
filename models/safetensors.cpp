#include "models/safetensors.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/strings.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

std::optional<at::ScalarType> readable_type(const std::string& dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "BF16") return at::kBFloat16;
  if (dtype == "F16") return at::kHalf;
  return std::nullopt;
}

std::string shape_text(at::IntArrayRef shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

// Shard name -> the tensors the index promises in it.
std::unordered_map<std::string, std::set<std::string>> read_index(const fs::path& path) {
  const Json index = read_json(path);
  const auto map = index.find("weight_map");
  if (!index.is_object() || map == index.end() || !map->is_object())
    throw UserError(path.string() + ": an object weight_map is missing");
  std::unordered_map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) throw UserError(path.string() + ": weight_map must give a file name for " + sluice::quoted(tensor));
    const auto name = shard.get<std::string>();
    if (fs::path(name).filename() != name) {
      throw UserError(path.string() + ": weight_map gives " + sluice::quoted(name) + "; expected a file of the same folder");
    }
    shards[name].insert(tensor);
  }
  return shards;
}

std::string header_of(const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const size_t end = offset + tensor.nbytes();
    header[name] = {{"dtype", "F32"}, {"shape", tensor.sizes().vec()}, {"data_offsets", Json::array({offset, end})}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data is aligned when the file is mapped
  return text;
}

void write_all(OutputFile& file, const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  const std::string header = header_of(tensors);
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  file.write(length);
  file.write(header);
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor data = tensor.detach().contiguous();
    file.write({static_cast<const char*>(data.const_data_ptr()), data.nbytes()});
  }
  file.close();
}

}  // namespace

TensorFolder::TensorFolder(const fs::path& folder) {
  const fs::path single = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  if (fs::exists(single)) {
    add_file(single);
    return;
  }
  if (!fs::exists(index)) {
    throw UserError(folder.string() + " holds neither model.safetensors nor model.safetensors.index.json",
                    "give a Hugging Face folder with safetensors weights, or init = \"random\" to start without weights");
  }
  const auto shards = read_index(index);
  std::set<std::string> ordered;
  for (const auto& [shard, tensors] : shards) ordered.insert(shard);
  for (const std::string& shard : ordered) {
    add_file(folder / shard);
    for (const std::string& tensor : shards.at(shard)) {
      if (!contains(tensor) || file_of(tensor) != (folder / shard).string()) {
        throw UserError((folder / shard).string() + ": tensor " + sluice::quoted(tensor) + " is missing; " + index.string() +
                        " says it is here");
      }
    }
  }
}

void TensorFolder::add_file(const fs::path& path) {
  const size_t file = files_.size();
  files_.emplace_back(path);
  file_names_.push_back(path.string());
  for (TensorEntry& entry : parse_safetensors_header(files_.back().bytes(), path.string())) {
    const std::string name = entry.name;
    if (contains(name)) throw UserError(path.string() + ": tensor " + sluice::quoted(name) + " is also in " + file_of(name));
    names_.push_back(name);
    places_.emplace(name, Place{file, std::move(entry)});
  }
}

std::string TensorFolder::file_of(const std::string& name) const {
  const auto place = places_.find(name);
  return file_names_[place == places_.end() ? 0 : place->second.file];
}

at::Tensor TensorFolder::read(const std::string& name, at::IntArrayRef shape) const {
  const auto place = places_.find(name);
  const std::string where = file_of(name) + ": tensor " + sluice::quoted(name);
  if (place == places_.end()) {
    const std::string near = did_you_mean(name, names_);
    throw UserError(where + " of shape " + shape_text(shape) + " is missing",
                    near.empty() ? "" : "the file has " + sluice::quoted(near));
  }
  const TensorEntry& entry = place->second.entry;
  if (at::IntArrayRef(entry.shape) != shape) {
    throw UserError(where + " has shape " + shape_text(entry.shape) + "; config.json asks for " + shape_text(shape));
  }
  const auto type = readable_type(entry.dtype);
  if (!type) throw UserError(where + " has dtype " + entry.dtype + "; expected F32, BF16 or F16");
  at::Tensor stored = at::empty(shape, at::TensorOptions(*type));
  const auto bytes = files_[place->second.file].bytes();
  if (entry.end > entry.begin) std::memcpy(stored.mutable_data_ptr(), bytes.data() + entry.begin, entry.end - entry.begin);
  return stored.to(at::kFloat);
}

void write_safetensors(const fs::path& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  for (const auto& [name, tensor] : tensors) SLUICE_CHECK(tensor.scalar_type() == at::kFloat && tensor.is_cpu(), name);
  fs::path temporary = path;
  temporary += ".tmp";
  try {
    OutputFile file(temporary);
    write_all(file, tensors);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  replace_path(temporary, path);
}

}  // namespace sluice::models
