#include "models/folder/folder_check.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text/strings.h"
#include "models/folder/stored_codes.h"

namespace sluice::models {
namespace {

Problem problem_of(std::string message, std::string help = {}) {
  return {.where = {}, .message = std::move(message), .caret = {}, .notes = {}, .help = std::move(help)};
}

std::string model_text(const ModelConfig& config) { return config.architecture + " with " + plural(config.layers, "layer"); }

}  // namespace

std::string name_in(const TensorFolder& tensors, const StoredWeight& stored, const ModelConfig& config) {
  if (tensors.contains(stored.name)) return stored.name;
  const std::string bare = without_prefix(stored.name, config);
  return tensors.contains(bare) ? bare : stored.name;
}

Problems tensor_problems(const TensorFolder& tensors, const std::vector<ExpectedWeight>& expected, const ModelConfig& config,
                         Head head, const std::optional<StoredQuantisation>& stored) {
  Problems problems;
  std::set<std::string> known;
  for (const ExpectedWeight& weight : expected) {
    if (stored && weight.quantises) {
      const std::vector<std::string> names = names_of_codes(tensors, weight, config);
      if (known.contains(names.front())) continue;
      known.insert(names.begin(), names.end());
      const Problems of_codes = problems_of_codes(tensors, weight, config, *stored);
      problems.insert(problems.end(), of_codes.begin(), of_codes.end());
      continue;
    }
    const std::string name = name_in(tensors, weight.stored, config);
    if (!known.insert(name).second) continue;  // another part of a tensor seen before
    const bool may_be_missing = weight.kind == ExpectedWeight::Kind::kValueHead;
    if (may_be_missing && !tensors.contains(name)) continue;
    const std::string problem = tensors.problem_with(name, weight.stored.shape);
    if (problem.empty()) continue;
    const bool no_head = weight.kind == ExpectedWeight::Kind::kHead && !tensors.contains(name);
    problems.push_back(problem_of(tensors.file_of(name) + ": " + problem,
                                  no_head ? "if it is the input embedding, set tie_word_embeddings to true in config.json" : ""));
  }
  for (const std::string& name : tensors.names()) {
    if (known.contains(name) || is_ignorable_weight(name, config, head)) continue;
    problems.push_back(problem_of(
        tensors.file_of(name) + ": tensor " + sluice::quoted(name) + " belongs to no weight of a " + model_text(config),
        name == "score.weight" ? "it is a value head: load the model with head = \"value\"" : ""));
  }
  return problems;
}

Problems tied_problems(const TensorFolder& tensors, const std::vector<ExpectedWeight>& expected, const ModelConfig& config) {
  constexpr const char* kHead = "lm_head.weight";
  if (!config.tied_embeddings || !tensors.contains(kHead)) return {};
  const ExpectedWeight& embedding = expected.front();
  const std::string where = tensors.file_of(kHead) + ": ", problem = tensors.problem_with(kHead, embedding.shape);
  if (!problem.empty()) return {problem_of(where + problem)};
  bool same = true;
  tensors.for_each_rows(kHead, [&](const at::Tensor& rows, int64_t first) {
    const at::Tensor tied = at::empty_like(rows);
    tensors.read_into(name_in(tensors, embedding.stored, config), 0, first, tied);
    same = same && tied.equal(rows);
  });
  if (same) return {};
  return {problem_of(where + "lm_head.weight differs from the input embedding, but config.json says tie_word_embeddings",
                     "set tie_word_embeddings to false in config.json")};
}

void throw_tensor_problems(const Problems& problems, const TensorFolder& tensors, const ModelConfig& config) {
  constexpr size_t kMost = 20;
  if (problems.empty()) return;
  if (problems.size() == 1) throw UserError(problems.front());
  const auto count = static_cast<int64_t>(problems.size());
  Problem all = problem_of(tensors.files().front() + ": " + plural(count, "tensor") + " are not those of a " + model_text(config),
                           "the weights and config.json must be of the same model");
  for (size_t i = 0; i < std::min(kMost, problems.size()); ++i) all.notes.push_back(problems[i].message);
  if (problems.size() > kMost) all.notes.push_back("and " + std::to_string(problems.size() - kMost) + " more");
  throw UserError(std::move(all));
}

}  // namespace sluice::models
