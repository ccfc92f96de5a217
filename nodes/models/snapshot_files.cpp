#include "nodes/models/snapshot_files.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/scalar_tensor.h>

#include <cstring>
#include <set>

#include "base/error.h"
#include "base/strings.h"
#include "models/folder/safetensors.h"
#include "models/folder/safetensors_writer.h"

namespace sluice::nodes {
namespace fs = std::filesystem;
namespace {

using models::NamedTensors;
using models::TensorFolder;

constexpr const char* kSteps = "steps";

fs::path state_file(const fs::path& folder, const std::string& model) { return folder / (model + ".optimizer.safetensors"); }

fs::path version_file(const fs::path& folder, const std::string& model, int64_t version) {
  return folder / (model + ".version-" + std::to_string(version) + ".safetensors");
}

void append(NamedTensors& tensors, const char* prefix, const NamedTensors& more) {
  for (const auto& [name, tensor] : more) tensors.emplace_back(prefix + name, tensor);
}

NamedTensors named(const TrainingState& state) {
  NamedTensors tensors;
  append(tensors, "weight.", state.weights);
  append(tensors, "exp_avg.", state.first_moments);
  append(tensors, "exp_avg_sq.", state.second_moments);
  return tensors;
}

NamedTensors named(const NamedTensors& weights) {
  NamedTensors tensors;
  append(tensors, "weight.", weights);
  return tensors;
}

// What is wrong with a tensor of the file; empty: nothing.
std::string problem_with(const TensorFolder& tensors, const std::string& name, const char* dtype, at::IntArrayRef shape) {
  const std::string where = tensors.file_of(name) + ": tensor " + sluice::quoted(name);
  if (!tensors.contains(name)) return where + " is missing";
  const models::TensorEntry& entry = tensors.entry(name);
  if (at::IntArrayRef(entry.shape) != shape)
    return where + " has shape " + models::shape_text(entry.shape) + "; the model's is " + models::shape_text(shape);
  if (entry.dtype != dtype) return where + " has dtype " + entry.dtype + "; expected " + dtype;
  return tensors.damage_of(name);
}

// All that is wrong, at most `kMostProblems`.
void check(const TensorFolder& tensors, const NamedTensors& targets, bool with_steps) {
  constexpr size_t kMostProblems = 20;
  Problems problems;
  std::set<std::string> known;
  const auto report = [&](std::string problem) {
    if (problem.empty() || problems.size() == kMostProblems) return;
    problems.push_back({.message = std::move(problem),
                        .caret = {},
                        .notes = {},
                        .help = "go on with the model, freeze and lora of the run that saved it, or from another checkpoint"});
  };
  if (with_steps) {
    known.insert(kSteps);
    report(problem_with(tensors, kSteps, "I64", {1}));
  }
  for (const auto& [name, target] : targets) {
    known.insert(name);
    report(problem_with(tensors, name, "F32", target.sizes()));
  }
  for (const std::string& name : tensors.names()) {
    if (!known.contains(name))
      report(tensors.file_of(name) + ": tensor " + sluice::quoted(name) + " is none that is trained here");
  }
  if (!problems.empty()) throw UserError(std::move(problems));
}

void read_into(const TensorFolder& tensors, const NamedTensors& targets) {
  const at::NoGradGuard no_gradient;
  for (const auto& [name, target] : targets) tensors.read_into(name, 0, 0, target.dim() == 0 ? target.reshape({1}) : target);
}

int64_t steps_of(const TensorFolder& tensors) {
  std::string bytes;
  tensors.for_each_bytes(kSteps, [&](std::string_view some) { bytes += some; });
  int64_t steps = 0;
  SLUICE_CHECK(bytes.size() == sizeof steps, "steps");
  std::memcpy(&steps, bytes.data(), sizeof steps);
  return steps;
}

}  // namespace

void write_training_state(const TrainingState& state, const fs::path& folder, const std::string& model, FileSystem& files) {
  NamedTensors tensors{{kSteps, at::scalar_tensor(state.steps, at::kLong).reshape({1})}};
  append(tensors, "", named(state));
  models::write_safetensors(state_file(folder, model), tensors, files);
}

void read_training_state(TrainingState& state, const fs::path& folder, const std::string& model) {
  const TensorFolder tensors = TensorFolder::of_file(state_file(folder, model));
  const NamedTensors targets = named(state);
  check(tensors, targets, /*with_steps=*/true);
  read_into(tensors, targets);
  state.steps = steps_of(tensors);
}

void write_version(const NamedTensors& weights, int64_t version, const fs::path& folder, const std::string& model,
                   FileSystem& files) {
  models::write_safetensors(version_file(folder, model, version), named(weights), files);
}

void read_version(const NamedTensors& weights, int64_t version, const fs::path& folder, const std::string& model) {
  const TensorFolder tensors = TensorFolder::of_file(version_file(folder, model, version));
  const NamedTensors targets = named(weights);
  check(tensors, targets, /*with_steps=*/false);
  read_into(tensors, targets);
}

}  // namespace sluice::nodes
