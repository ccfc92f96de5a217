#include "nodes/models/snapshot/snapshot_files.h"

#include <ATen/ops/scalar_tensor.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "models/folder/safetensors.h"
#include "models/folder/safetensors_writer.h"
#include "nodes/models/snapshot/stored_pieces.h"

namespace sluice::nodes {
namespace fs = std::filesystem;
namespace {

using models::NamedTensors;
using models::TensorFolder;
using models::TensorPiece;

constexpr const char* kSteps = "steps";

fs::path state_file(const fs::path& folder, const std::string& model, SnapshotWriter writer) {
  if (writer.ranks == 1) return folder / (model + ".optimizer.safetensors");
  char part[32];
  std::snprintf(part, sizeof part, "-%05d-of-%05d", writer.rank + 1, writer.ranks);
  return folder / (model + ".optimizer" + part + ".safetensors");
}

// How many ranks have written into the folder: as the name of any of their files says.
int ranks_of(const fs::path& folder, const std::string& model) {
  const std::string begin = model + ".optimizer-", middle = "-of-";
  for (const fs::path& entry : entries_of(folder)) {
    const std::string name = entry.filename().string();
    const size_t of = name.find(middle, begin.size());
    if (name.starts_with(begin) && of != std::string::npos) return std::max(1, std::atoi(name.c_str() + of + middle.size()));
  }
  return 1;
}

std::vector<fs::path> state_files(const fs::path& folder, const std::string& model) {
  std::vector<fs::path> files{state_file(folder, model, {})};
  if (is_there(files.front())) return files;
  const int ranks = ranks_of(folder, model);
  files.clear();
  for (int rank = 0; rank < ranks; ++rank) files.push_back(state_file(folder, model, {rank, ranks}));
  return files;
}

fs::path version_file(const fs::path& folder, const std::string& model, int64_t version) {
  return folder / (model + ".version-" + std::to_string(version) + ".safetensors");
}

fs::path average_file(const fs::path& folder, const std::string& model) { return folder / (model + ".average.safetensors"); }

constexpr const char *kWeight = "weight.", *kFirstMoment = "exp_avg.", *kSecondMoment = "exp_avg_sq.";

NamedTensors with_prefix(const char* prefix, const NamedTensors& tensors) {
  NamedTensors named;
  for (const auto& [name, tensor] : tensors) named.emplace_back(prefix + name, tensor);
  return named;
}

// A tensor that is there as a whole has its name and its shape.
void append(NamedTensors& tensors, const char* prefix, const std::vector<TensorPiece>& pieces) {
  for (const TensorPiece& piece : pieces) {
    const std::string name = prefix + piece.name;
    if (piece.values.numel() == c10::multiply_integers(piece.shape))
      tensors.emplace_back(name, piece.values.reshape(piece.shape));
    else
      tensors.emplace_back(StoredPieces::name_of(name, piece.first, piece.first + piece.values.numel()), piece.values);
  }
}

// What is wrong with the number of steps that a file has; empty: nothing.
std::string problem_with_steps(const TensorFolder& file) {
  const std::string where = file.file_of(kSteps) + ": tensor " + sluice::quoted(kSteps);
  if (!file.contains(kSteps)) return where + " is missing";
  const models::TensorEntry& entry = file.entry(kSteps);
  if (entry.shape != std::vector<int64_t>{1} || entry.dtype != "I64")
    return where + " has shape " + models::shape_text(entry.shape) + " and dtype " + entry.dtype + "; expected [1] and I64";
  return file.damage_of(kSteps);
}

// All that is wrong, at most `kMostProblems`.
void check(const StoredPieces& stored, const NamedTensors& expected, bool with_steps) {
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
    for (const TensorFolder& file : stored.files()) report(problem_with_steps(file));
  }
  for (const auto& [name, tensor] : expected) {
    known.insert(name);
    report(stored.problem_with(name, tensor.sizes()));
  }
  for (const std::string& name : stored.names()) {
    if (!known.contains(name))
      report(stored.file_of(name) + ": tensor " + sluice::quoted(name) + " is none that is trained here");
  }
  if (!problems.empty()) throw UserError(std::move(problems));
}

int64_t steps_of(const TensorFolder& file) {
  std::string bytes;
  file.for_each_bytes(kSteps, [&](std::string_view some) { bytes += some; });
  int64_t steps = 0;
  SLUICE_CHECK(bytes.size() == sizeof steps, "steps");
  std::memcpy(&steps, bytes.data(), sizeof steps);
  return steps;
}

// That all files have.
int64_t steps_of(const StoredPieces& stored) {
  const int64_t steps = steps_of(stored.files().front());
  for (const TensorFolder& file : stored.files()) {
    if (steps_of(file) != steps)
      throw UserError(file.file_of(kSteps) + " is of another checkpoint than " + stored.files().front().file_of(kSteps),
                      "go on from another checkpoint");
  }
  return steps;
}

at::Tensor steps_tensor(int64_t steps) { return at::scalar_tensor(steps, at::kLong).reshape({1}); }

void read_weights(const StoredPieces& stored, const NamedTensors& weights) {
  for (const auto& [name, tensor] : weights)
    stored.read_into({.name = kWeight + name, .shape = tensor.sizes().vec(), .values = tensor.view({-1})});
}

void read_pieces(const StoredPieces& stored, const char* prefix, const std::vector<TensorPiece>& pieces) {
  for (TensorPiece piece : pieces) {
    piece.name = prefix + piece.name;
    stored.read_into(piece);
  }
}

}  // namespace

void write_training_state(const TrainingState& state, const fs::path& folder, const std::string& model, SnapshotWriter writer,
                          FileSystem& files) {
  NamedTensors tensors{{kSteps, steps_tensor(state.steps)}};
  append(tensors, kWeight, state.weights);
  append(tensors, kFirstMoment, state.first_moments);
  append(tensors, kSecondMoment, state.second_moments);
  models::write_safetensors(state_file(folder, model, writer), tensors, files);
}

void read_training_state(TrainingState& state, const NamedTensors& weights, const fs::path& folder, const std::string& model) {
  const StoredPieces stored(state_files(folder, model));
  NamedTensors expected;
  for (const char* prefix : {kWeight, kFirstMoment, kSecondMoment}) {
    for (auto& tensor : with_prefix(prefix, weights)) expected.push_back(std::move(tensor));
  }
  check(stored, expected, /*with_steps=*/true);
  state.steps = steps_of(stored);
  read_pieces(stored, kWeight, state.weights);
  read_pieces(stored, kFirstMoment, state.first_moments);
  read_pieces(stored, kSecondMoment, state.second_moments);
}

void write_version(const NamedTensors& weights, int64_t version, const fs::path& folder, const std::string& model,
                   FileSystem& files) {
  models::write_safetensors(version_file(folder, model, version), with_prefix(kWeight, weights), files);
}

void read_version(const NamedTensors& weights, int64_t version, const fs::path& folder, const std::string& model) {
  const StoredPieces stored({version_file(folder, model, version)});
  check(stored, with_prefix(kWeight, weights), /*with_steps=*/false);
  read_weights(stored, weights);
}

void write_average(const NamedTensors& weights, int64_t steps, const fs::path& folder, const std::string& model,
                   FileSystem& files) {
  NamedTensors tensors = with_prefix(kWeight, weights);
  tensors.emplace_back(kSteps, steps_tensor(steps));
  models::write_safetensors(average_file(folder, model), tensors, files);
}

int64_t read_average(const NamedTensors& weights, const fs::path& folder, const std::string& model) {
  if (!is_there(average_file(folder, model)))
    throw UserError(folder.string() + " has no average '" + model + "': the run that saved it had none of this name",
                    "go on without the model, or begin a run of its own with it");
  const StoredPieces stored({average_file(folder, model)});
  check(stored, with_prefix(kWeight, weights), /*with_steps=*/true);
  read_weights(stored, weights);
  return steps_of(stored);
}

}  // namespace sluice::nodes
