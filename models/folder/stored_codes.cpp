#include "models/folder/stored_codes.h"

#include <ATen/ops/empty.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text/strings.h"
#include "models/folder/folder_check.h"
#include "models/kernels/quantised_rows.h"

namespace sluice::models {
namespace {

constexpr int64_t kOfWord = 8;  // codes of 4 bits
constexpr std::array<int, kOfWord> kInOrder{0, 1, 2, 3, 4, 5, 6, 7};
constexpr std::array<int, kOfWord> kPlaceInAwq{0, 4, 1, 5, 2, 6, 3, 7};  // of each of eight outputs

using Format = StoredQuantisation::Format;

int64_t words_for(int64_t codes) { return (codes + kOfWord - 1) / kOfWord; }

/// The tensors of one matrix, and what they must be.
struct StoredMatrix {
  StoredMatrix(const TensorFolder& of, const ExpectedWeight& weight, const ModelConfig& config, const StoredQuantisation& stored)
      : tensors(of),
        format(stored.format),
        group(stored.group),
        first(weight.stored.first_output),
        count(weight.shape[0]),
        outputs(weight.stored.shape[0]),
        inputs(weight.stored.shape[1]),
        groups((inputs + group - 1) / group) {
    StoredWeight named = weight.stored;
    const std::string module = named.name.substr(0, named.name.rfind(".weight"));
    named.name = module + ".qweight";
    const std::string found = name_in(of, named, config);
    name = found.substr(0, found.rfind(".qweight"));
  }

  bool is_awq() const { return format == Format::kAwq; }
  std::vector<int64_t> codes_shape() const {
    return is_awq() ? std::vector{inputs, words_for(outputs)} : std::vector{words_for(inputs), outputs};
  }
  std::vector<int64_t> zeros_shape() const { return {groups, words_for(outputs)}; }

  std::vector<int32_t> words(const std::string& part) const {
    std::string bytes;
    tensors.for_each_bytes(name + part, [&](std::string_view some) { bytes += some; });
    std::vector<int32_t> result(bytes.size() / sizeof(int32_t));
    std::memcpy(result.data(), bytes.data(), result.size() * sizeof(int32_t));
    return result;
  }

  const TensorFolder& tensors;
  std::string name;
  Format format;
  int64_t group;
  int64_t first, count;  // of the outputs, those of this weight
  int64_t outputs, inputs, groups;
};

int code_in(int32_t word, int place) { return static_cast<int>(static_cast<uint32_t>(word) >> (4 * place) & 15u); }

// Of rows of words that hold outputs side by side.
class CodesOfOutputs {
 public:
  CodesOfOutputs(const StoredMatrix& matrix, std::vector<int32_t> words)
      : words_(std::move(words)), stride_(words_for(matrix.outputs)), places_(matrix.is_awq() ? kPlaceInAwq : kInOrder) {}

  int at(int64_t row, int64_t output) const {
    return code_in(words_[static_cast<size_t>(row * stride_ + output / kOfWord)], places_[static_cast<size_t>(output % kOfWord)]);
  }

 private:
  const std::vector<int32_t> words_;
  const int64_t stride_;
  const std::array<int, kOfWord>& places_;
};

at::Tensor read_zeros(const StoredMatrix& matrix) {
  const CodesOfOutputs stored(matrix, matrix.words(".qzeros"));
  const int more = matrix.format == Format::kGptq ? 1 : 0;
  at::Tensor zeros = at::empty({matrix.count, matrix.groups}, at::kByte);
  auto* to = zeros.mutable_data_ptr<uint8_t>();
  for (int64_t output = 0; output < matrix.count; ++output)
    for (int64_t group = 0; group < matrix.groups; ++group)
      *to++ = static_cast<uint8_t>(stored.at(group, matrix.first + output) + more);
  return zeros;
}

at::Tensor read_inputs_of_outputs(const StoredMatrix& matrix) {
  const std::vector<int32_t> words = matrix.words(".qweight");
  at::Tensor codes = at::empty({matrix.count, matrix.inputs}, at::kByte);
  auto* to = codes.mutable_data_ptr<uint8_t>();
  if (matrix.is_awq()) {
    const CodesOfOutputs stored(matrix, words);
    for (int64_t output = 0; output < matrix.count; ++output)
      for (int64_t input = 0; input < matrix.inputs; ++input)
        *to++ = static_cast<uint8_t>(stored.at(input, matrix.first + output));
    return codes;
  }
  for (int64_t output = 0; output < matrix.count; ++output)
    for (int64_t input = 0; input < matrix.inputs; ++input) {
      const int64_t word = input / kOfWord * matrix.outputs + matrix.first + output;
      *to++ = static_cast<uint8_t>(code_in(words[static_cast<size_t>(word)], static_cast<int>(input % kOfWord)));
    }
  return codes;
}

void check_order(const StoredMatrix& matrix) {
  const std::string name = matrix.name + ".g_idx";
  if (!matrix.tensors.contains(name)) return;
  const std::vector<int32_t> groups = matrix.words(".g_idx");
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] == static_cast<int64_t>(i) / matrix.group) continue;
    throw UserError(matrix.tensors.file_of(name) + ": tensor " + sluice::quoted(name) +
                        " has groups that are not of consecutive inputs (desc_act), which are not read",
                    "use a folder that was quantised with desc_act = false, or one that is not quantised");
  }
}

std::string problem_of_words(const TensorFolder& tensors, const std::string& name, const std::vector<int64_t>& shape) {
  if (!tensors.contains(name)) return tensors.problem_with(name, shape);
  const TensorEntry& entry = tensors.entry(name);
  const std::string where = "tensor " + sluice::quoted(name);
  if (entry.shape != shape) return where + " has shape " + shape_text(entry.shape) + "; expected " + shape_text(shape);
  return entry.dtype == "I32" ? "" : where + " has dtype " + entry.dtype + "; expected I32";
}

}  // namespace

std::vector<std::string> names_of_codes(const TensorFolder& tensors, const ExpectedWeight& weight, const ModelConfig& config) {
  const std::string module = StoredMatrix(tensors, weight, config, {}).name;
  return {module + ".qweight", module + ".qzeros", module + ".scales", module + ".g_idx"};
}

Problems problems_of_codes(const TensorFolder& tensors, const ExpectedWeight& weight, const ModelConfig& config,
                           const StoredQuantisation& stored) {
  Problems problems;
  const auto report = [&](const std::string& name, const std::string& problem) {
    if (problem.empty()) return;
    problems.push_back({.where = {}, .message = tensors.file_of(name) + ": " + problem, .caret = {}, .notes = {}, .help = {}});
  };
  if (weight.stored.transposed) {
    report(weight.stored.name, "tensor " + sluice::quoted(weight.stored.name) +
                                   " is written transposed in this family, of which quantised folders are not read");
    return problems;
  }
  const StoredMatrix matrix(tensors, weight, config, stored);
  report(matrix.name + ".qweight", problem_of_words(tensors, matrix.name + ".qweight", matrix.codes_shape()));
  report(matrix.name + ".qzeros", problem_of_words(tensors, matrix.name + ".qzeros", matrix.zeros_shape()));
  report(matrix.name + ".scales", tensors.problem_with(matrix.name + ".scales", {matrix.groups, matrix.outputs}));
  if (tensors.contains(matrix.name + ".g_idx"))
    report(matrix.name + ".g_idx", problem_of_words(tensors, matrix.name + ".g_idx", {matrix.inputs}));
  return problems;
}

at::Tensor read_codes(const TensorFolder& tensors, const ExpectedWeight& weight, const ModelConfig& config,
                      const StoredQuantisation& stored) {
  const StoredMatrix matrix(tensors, weight, config, stored);
  check_order(matrix);
  const at::Tensor scales = tensors.read(matrix.name + ".scales", {matrix.groups, matrix.outputs});
  return quantised_of_codes(read_inputs_of_outputs(matrix), scales.narrow(1, matrix.first, matrix.count).t().contiguous(),
                            read_zeros(matrix), matrix.group);
}

}  // namespace sluice::models
