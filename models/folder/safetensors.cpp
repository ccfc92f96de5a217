#include "models/folder/safetensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/numbers/crc32c.h"
#include "base/text/strings.h"
#include "models/folder/finite_values.h"
#include "models/folder/safetensors_index.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

constexpr const char *kSingle = "model.safetensors", *kIndex = "model.safetensors.index.json";
constexpr size_t kChunkBytes = size_t{1} << 20;

// A tensor over bytes of the file; a copy where they are not aligned, which the format permits.
at::Tensor view_or_copy(std::span<const std::byte> bytes, at::IntArrayRef shape, const at::TensorOptions& type) {
  void* data = const_cast<std::byte*>(bytes.data());  // only read
  if (reinterpret_cast<uintptr_t>(data) % type.dtype().itemsize() == 0) return at::from_blob(data, shape, type);
  const at::Tensor copy = at::empty(shape, type);
  std::memcpy(copy.mutable_data_ptr(), data, bytes.size());
  return copy;
}

// Weights that are there, but are not read: of other formats, links of a cache whose target is gone, shards of an unknown whole.
struct OtherWeights {
  std::string_view prefix, suffix;
  const char* help;
};

constexpr OtherWeights kOtherWeights[] = {
    {"", "adapter_model.safetensors", "take its base model, and lora = { adapter = \"...\", ... } beside it"},
    {"", ".safetensors", "fetch the folder again, whole: model.safetensors.index.json says which shards there are"},
    {"pytorch_model", ".bin", "save it with save_pretrained() of transformers, which writes model.safetensors"},
    {"", ".gguf", "GGUF is not read: take the Hugging Face folder that it was made of"},
};

[[noreturn]] void refuse_other_weights(const fs::path& folder) {
  const std::string neither = folder.string() + " holds neither model.safetensors nor model.safetensors.index.json";
  const std::vector<fs::path> entries = entries_of(folder);
  for (const OtherWeights& other : kOtherWeights) {
    const auto found = std::ranges::find_if(entries, [&](const fs::path& entry) {
      const std::string name = entry.filename().string();
      return name.starts_with(other.prefix) && name.ends_with(other.suffix);
    });
    if (found == entries.end()) continue;
    const bool gone = path_kind(*found) == PathKind::kNothing;
    throw UserError(neither + ", but " + found->filename().string() + (gone ? ", a link to a file that is not there" : ""),
                    other.help);
  }
  throw UserError(neither, "give a Hugging Face folder with safetensors weights, or init = \"random\" to start without weights");
}

}  // namespace

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

bool TensorFolder::is_in(const fs::path& folder) { return is_there(folder / kSingle) || is_there(folder / kIndex); }

TensorFolder TensorFolder::of_file(const fs::path& file) {
  TensorFolder tensors;
  tensors.add_file(file);
  return tensors;
}

TensorFolder::TensorFolder(const fs::path& folder) {
  const fs::path single = folder / kSingle, index = folder / kIndex;
  if (is_there(single)) {
    add_file(single);
    return;
  }
  if (!is_there(index)) refuse_other_weights(folder);
  add_shards(folder, index);
}

void TensorFolder::add_shards(const fs::path& folder, const fs::path& index) {
  for (const auto& [shard, tensors] : parse_safetensors_index(read_file(index), index.string())) {
    add_file(folder / shard);
    for (const std::string& tensor : tensors) {
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

const TensorFolder::Place& TensorFolder::place(const std::string& name) const {
  const auto found = places_.find(name);
  SLUICE_CHECK(found != places_.end(), name);
  return found->second;
}

const TensorEntry& TensorFolder::entry(const std::string& name) const { return place(name).entry; }

void TensorFolder::for_each_bytes(const std::string& name, const std::function<void(std::string_view bytes)>& visit) const {
  const Place& at = place(name);
  const MappedFile& file = files_[at.file];
  for (size_t begin = at.entry.begin; begin < at.entry.end; begin += kChunkBytes) {
    const size_t end = std::min(begin + kChunkBytes, at.entry.end);
    visit({reinterpret_cast<const char*>(file.bytes().data()) + begin, end - begin});
    file.drop(begin, end);
  }
}

void TensorFolder::for_each_rows(const std::string& name,
                                 const std::function<void(const at::Tensor& rows, int64_t first)>& visit) const {
  const Place& at = place(name);
  const MappedFile& file = files_[at.file];
  const size_t bytes = at.entry.end - at.entry.begin;
  if (bytes == 0) return;
  std::vector<int64_t> shape = at.entry.shape;
  if (shape.empty()) shape.push_back(1);
  const int64_t rows = shape[0];
  const size_t row_bytes = bytes / static_cast<size_t>(rows);
  const auto most = static_cast<int64_t>(std::max<size_t>(1, kChunkBytes / row_bytes));
  shape[0] = std::min(most, rows);
  const at::TensorOptions type(*readable_type(at.entry.dtype));
  for (int64_t first = 0; first < rows; first += most) {
    shape[0] = std::min(most, rows - first);
    const size_t begin = at.entry.begin + static_cast<size_t>(first) * row_bytes,
                 end = begin + static_cast<size_t>(shape[0]) * row_bytes;
    visit(view_or_copy(file.bytes().subspan(begin, end - begin), shape, type), first);
    file.drop(begin, end);
  }
}

void TensorFolder::read_into(const std::string& name, int64_t dim, int64_t first, const at::Tensor& target) const {
  const int64_t count = target.size(dim);
  for_each_rows(name, [&](const at::Tensor& rows, int64_t row) {
    if (count_not_finite(rows) > 0)
      throw UserError(file_of(name) + ": tensor " + sluice::quoted(name) + " has values that are not finite",
                      "the file is damaged, or what wrote it had diverged: rlhf-run model verify FOLDER counts them");
    if (dim != 0) {
      target.narrow(0, row, rows.size(0)).copy_(rows.narrow(dim, first, count));
      return;
    }
    const int64_t begin = std::max(row, first), end = std::min(row + rows.size(0), first + count);
    if (begin < end) target.narrow(0, begin - first, end - begin).copy_(rows.narrow(0, begin - row, end - begin));
  });
}

std::string TensorFolder::damage_of(const std::string& name) const {
  const std::optional<uint32_t> expected = entry(name).checksum;
  if (!expected) return {};
  uint32_t found = 0;
  for_each_bytes(name, [&](std::string_view bytes) { found = crc32c(bytes, found); });
  if (found == *expected) return {};
  return file_of(name) + ": tensor " + sluice::quoted(name) + " has the checksum " + checksum_text(found) + "; the file says " +
         checksum_text(*expected);
}

std::string TensorFolder::problem_with(const std::string& name, at::IntArrayRef shape) const {
  const auto found = places_.find(name);
  const std::string where = "tensor " + sluice::quoted(name);
  if (found == places_.end()) {
    const std::string near = did_you_mean(name, names_);
    return where + " of shape " + shape_text(shape) + " is missing" +
           (near.empty() ? "" : "; the file has " + sluice::quoted(near));
  }
  const TensorEntry& entry = found->second.entry;
  if (at::IntArrayRef(entry.shape) != shape) {
    return where + " has shape " + shape_text(entry.shape) + "; config.json asks for " + shape_text(shape);
  }
  if (!readable_type(entry.dtype)) return where + " has dtype " + entry.dtype + "; expected F32, BF16 or F16";
  return {};
}

at::Tensor TensorFolder::read(const std::string& name, at::IntArrayRef shape) const {
  if (const std::string problem = problem_with(name, shape); !problem.empty()) throw UserError(file_of(name) + ": " + problem);
  const at::Tensor result = at::empty(shape, at::kFloat);
  read_into(name, 0, 0, shape.empty() ? result.reshape({1}) : result);
  return result;
}

}  // namespace sluice::models
