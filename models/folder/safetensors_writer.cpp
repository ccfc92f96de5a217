#include "models/folder/safetensors_writer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/numbers/crc32c.h"
#include "models/folder/safetensors_header.h"
#include "models/kernels/quantised_rows.h"
#include "models/layers/adapter_products.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kPieceBytes = int64_t{8} << 20;  // of float32; what is merged, turned and converted of it is there beside it

const char* dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kBFloat16:
      return "BF16";
    case at::kHalf:
      return "F16";
    case at::kLong:
      return "I64";
    default:
      throw InternalError("weights are written as float32, bfloat16 or float16");
  }
}

std::vector<int64_t> shape_of(const OutputTensor& tensor) {
  std::vector<int64_t> shape = tensor.parts.front().sizes().vec();
  for (size_t i = 1; i < tensor.parts.size(); ++i) shape[0] += tensor.parts[i].size(0);
  if (is_quantised(tensor.parts.front())) shape[1] = inputs_of(tensor.parts.front());
  if (tensor.transposed) std::swap(shape.at(0), shape.at(1));
  return shape;
}

at::ScalarType stored_type(const OutputTensor& tensor, at::ScalarType dtype) {
  return tensor.parts.front().scalar_type() == at::kLong ? at::kLong : dtype;
}

size_t bytes_of(const OutputTensor& tensor, at::ScalarType dtype) {
  size_t elements = 1;
  for (const int64_t size : shape_of(tensor)) elements *= static_cast<size_t>(size);
  return elements * c10::elementSize(stored_type(tensor, dtype));
}

// `count` rows from `first` on of a part as the file has it, merged with its adapter: of one that is written transposed, columns.
// Of quantised rows there are no columns, but their values.
at::Tensor rows_of(const OutputTensor& tensor, size_t part, int64_t first, int64_t count) {
  const int64_t dim = tensor.transposed ? 1 : 0;
  at::Tensor whole = tensor.parts[part].dim() == 0 ? tensor.parts[part].reshape({1}) : tensor.parts[part];
  if (tensor.transposed && is_quantised(whole)) whole = dequantised(whole);
  Adapter adapter = tensor.adapters.empty() ? Adapter() : tensor.adapters[part];
  if (adapter.defined()) {
    at::Tensor& factor = tensor.transposed ? adapter.a : adapter.b;
    factor = factor.narrow(dim, first, count);
  }
  const at::Tensor rows = whole.narrow(dim, first, count).to(at::kCPU);
  if (adapter.defined()) adapter.a = adapter.a.to(at::kCPU), adapter.b = adapter.b.to(at::kCPU);
  return merged_matrix(rows, adapter);
}

// Calls visit(first, count) for rows of at most kPieceBytes, and at least one.
void for_each_range(int64_t rows, int64_t bytes, const std::function<void(int64_t first, int64_t count)>& visit) {
  if (rows == 0) return;
  const int64_t most = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, bytes / rows));
  for (int64_t first = 0; first < rows; first += most) visit(first, std::min(most, rows - first));
}

// Calls visit with the bytes of the tensor as the file holds them, piece by piece.
void for_each_piece(const OutputTensor& tensor, at::ScalarType dtype, const std::function<void(std::string_view)>& visit) {
  const auto visit_piece = [&](const at::Tensor& piece) {
    const at::Tensor data = piece.to(at::kCPU, stored_type(tensor, dtype)).contiguous();
    visit({static_cast<const char*>(data.const_data_ptr()), data.nbytes()});
  };
  if (!tensor.transposed) {
    for (size_t i = 0; i < tensor.parts.size(); ++i) {
      const at::Tensor& part = tensor.parts[i];
      for_each_range(part.dim() == 0 ? 1 : part.size(0), static_cast<int64_t>(part.nbytes()),
                     [&](int64_t first, int64_t count) { visit_piece(rows_of(tensor, i, first, count)); });
    }
    return;
  }
  int64_t bytes = 0;
  for (const at::Tensor& part : tensor.parts) bytes += static_cast<int64_t>(part.nbytes());
  for_each_range(shape_of(tensor).front(), bytes, [&](int64_t first, int64_t count) {
    std::vector<at::Tensor> parts;
    for (size_t i = 0; i < tensor.parts.size(); ++i) parts.push_back(rows_of(tensor, i, first, count));
    visit_piece(at::cat(parts).t());
  });
}

std::string checksum_of(const OutputTensor& tensor, at::ScalarType dtype) {
  uint32_t checksum = 0;
  for_each_piece(tensor, dtype, [&](std::string_view bytes) { checksum = crc32c(bytes, checksum); });
  return checksum_text(checksum);
}

std::string header_of(std::span<const OutputTensor> tensors, at::ScalarType dtype) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  size_t offset = 0;
  for (const OutputTensor& tensor : tensors) {
    const size_t end = offset + bytes_of(tensor, dtype);
    header["__metadata__"][kChecksumKey + tensor.name] = checksum_of(tensor, dtype);
    header[tensor.name] = {{"dtype", dtype_name(stored_type(tensor, dtype))},
                           {"shape", shape_of(tensor)},
                           {"data_offsets", Json::array({offset, end})}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data is aligned when the file is mapped
  return text;
}

void write_all(OutputFile& file, std::span<const OutputTensor> tensors, at::ScalarType dtype) {
  const std::string header = header_of(tensors, dtype);
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  file.write(length);
  file.write(header);
  for (const OutputTensor& tensor : tensors) {
    for_each_piece(tensor, dtype, [&](std::string_view bytes) { file.write(bytes); });
  }
  file.close();
}

void write_file(const fs::path& path, std::span<const OutputTensor> tensors, at::ScalarType dtype, FileSystem& files) {
  const at::NoGradGuard no_gradient;
  OutputFile file(path, OutputFile::Mode::kTruncate, files);
  write_all(file, tensors, dtype);
}

// Consecutive tensors that fit into one file together.
std::vector<std::span<const OutputTensor>> split(std::span<const OutputTensor> tensors, const WriteOptions& options) {
  std::vector<std::span<const OutputTensor>> files;
  size_t begin = 0, bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const size_t more = bytes_of(tensors[i], options.dtype);
    if (i > begin && bytes + more > options.max_file_bytes) {
      files.push_back(tensors.subspan(begin, i - begin));
      begin = i, bytes = 0;
    }
    bytes += more;
  }
  files.push_back(tensors.subspan(begin));
  return files;
}

std::string shard_name(size_t index, size_t count) {
  char name[64];
  std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return name;
}

}  // namespace

void write_text(const fs::path& path, std::string_view text, FileSystem& files) {
  OutputFile file(path, OutputFile::Mode::kTruncate, files);
  file.write(text);
  file.close();
}

void write_model_files(const fs::path& folder, const std::vector<OutputTensor>& tensors, const WriteOptions& options,
                       FileSystem& files) {
  const auto shards = split(tensors, options);
  if (shards.size() == 1) {
    if (options.share.has(0)) write_file(folder / "model.safetensors", tensors, options.dtype, files);
    return;
  }
  Json places = Json::object();
  size_t total = 0;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    if (options.share.has(i)) write_file(folder / name, shards[i], options.dtype, files);
    for (const OutputTensor& tensor : shards[i]) {
      places[tensor.name] = name;
      total += bytes_of(tensor, options.dtype);
    }
  }
  if (options.share.writer > 0) return;
  const Json index = {{"metadata", {{"total_size", total}}}, {"weight_map", places}};
  write_text(folder / "model.safetensors.index.json", index.dump(2) + "\n", files);
}

size_t count_model_files(const std::vector<OutputTensor>& tensors, const WriteOptions& options) {
  return split(tensors, options).size();
}

void write_safetensors(const fs::path& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors, FileSystem& files) {
  std::vector<OutputTensor> whole;
  for (const auto& [name, tensor] : tensors) {
    SLUICE_CHECK(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kLong, name);
    whole.push_back({.name = name, .parts = {tensor}, .adapters = {}});
  }
  write_file(path, whole, at::kFloat, files);
}

}  // namespace sluice::models
