#include <iostream>
#include <utility>

#include "base/error.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/model/commands.h"
#include "cli/process/exit_codes.h"
#include "models/folder/finite_values.h"
#include "models/folder/folder_check.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

struct Verified {
  std::vector<std::string> problems;
  size_t tensors = 0, checksums = 0, bytes = 0;
};

void verify_bytes(const models::TensorFolder& tensors, const std::string& name, Verified& result) {
  const models::TensorEntry& entry = tensors.entry(name);
  ++result.tensors;
  result.bytes += entry.end - entry.begin;
  if (!entry.checksum) return;
  ++result.checksums;
  std::string damage = tensors.damage_of(name);
  if (!damage.empty()) result.problems.push_back(std::move(damage));
}

void verify_values(const models::TensorFolder& tensors, const std::string& name, Verified& result) {
  if (!models::readable_type(tensors.entry(name).dtype)) return;  // told with the names and shapes
  int64_t wrong = 0;
  tensors.for_each_rows(name, [&](const at::Tensor& rows, int64_t) { wrong += models::count_not_finite(rows); });
  if (wrong == 0) return;
  result.problems.push_back(tensors.file_of(name) + ": tensor " + sluice::quoted(name) + " has " + plural(wrong, "value") +
                            (wrong == 1 ? " that is" : " that are") + " not finite");
}

void verify_names(const fs::path& folder, const models::TensorFolder& tensors, const models::ModelConfig& config,
                  Verified& result) {
  const bool value_head = config.architecture.ends_with("ForSequenceClassification");
  const models::Head head = value_head ? models::Head::kValue : models::Head::kLanguageModel;
  models::Weights shapes_only;
  const auto expected = models::expected_weights(config, head, shapes_only);
  Problems problems = models::tensor_problems(tensors, expected, config, head, models::stored_quantisation(folder));
  if (problems.empty()) problems = models::tied_problems(tensors, expected, config);
  for (const Problem& problem : problems) result.problems.push_back(problem.message);
}

Verified verify(const fs::path& folder) {
  Verified result;
  try {
    const models::ModelConfig config = models::read_config(folder);
    const models::TensorFolder tensors(folder);
    verify_names(folder, tensors, config, result);
    for (const std::string& name : tensors.names()) {
      verify_bytes(tensors, name, result);
      verify_values(tensors, name, result);
    }
  } catch (const UserError& error) {  // nothing after it can be read
    for (const Problem& problem : error.problems()) {
      const SourceSpan& where = problem.where;
      const std::string place = where.known() ? where.source->name + ":" + std::to_string(where.line) + ": " : "";
      result.problems.push_back(place + problem.message);
    }
  }
  return result;
}

}  // namespace

int model_verify(const fs::path& folder) {
  const Verified result = verify(folder);
  for (const std::string& problem : result.problems) std::cout << printable(problem) << "\n";
  if (!result.problems.empty()) return kFailed;
  std::cout << printable(folder.string()) << ": " << plural(static_cast<int64_t>(result.tensors), "tensor") << ", "
            << human_bytes(result.bytes) << ": names, shapes and values are good; "
            << (result.checksums == 0 ? "no checksums" : plural(static_cast<int64_t>(result.checksums), "checksum") + " agree")
            << std::endl;
  return kDone;
}

}  // namespace sluice::cli
