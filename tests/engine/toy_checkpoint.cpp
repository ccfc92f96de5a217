#include "tests/engine/toy_checkpoint.h"

#include <fstream>

#include "base/error.h"
#include "base/files/file.h"
#include "engine/checkpoint/checkpoint_folder.h"

namespace sluice::engine::toy {
namespace fs = std::filesystem;

ToyRunFolder::ToyRunFolder(const fs::path& folder) : folder_(folder) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "metrics.jsonl") << "{\"iteration\": 0}\n";
  plan_.checkpoint.keep_last = 1;
}

void ToyRunFolder::save(int64_t iterations, FileSystem& files, CheckpointCopy copy) {
  model_->live = static_cast<uint64_t>(100 + iterations - 1);
  model_->publish(iterations - 1);
  model_->live = static_cast<uint64_t>(100 + iterations);
  const SavedModels models{{"policy", {.model = model_, .versions = {.readable = 1, .saved = 1}}}};
  NodeState state;
  state.values["row"] = iterations;
  CheckpointWriter writer({.plan = plan_, .run_folder = folder_, .models = models, .files = files, .on_warning = {}});
  const auto train_on = [&] { model_->live = 0; };
  model_->take_snapshot(models.at("policy").versions.saved_with(iterations), copy);
  if (copy == CheckpointCopy::kMemory) train_on();
  try {
    writer.begin(iterations);
    writer.write_model("policy");
    train_on();
    writer.finish({.iterations = iterations, .nodes = {{"source", state}}, .metrics = {}, .growing = {{"metrics.jsonl", 17}}});
  } catch (const UserError&) {
    writer.drop();
    throw;
  }
}

bool ToyRunFolder::holds(const fs::path& folder, int64_t iterations) {
  const auto [newest, damaged] = newest_intact(folder);
  if (!newest || !damaged.empty() || newest->iterations != iterations) return false;
  const Manifest manifest = read_manifest(newest->folder);
  const std::string weights = std::to_string(100 + iterations) + " " + std::to_string(100 + iterations - 1);
  return manifest.iterations == iterations && manifest.nodes.at("source").values.at("row") == NodeState::Value(iterations) &&
         read_file(newest->folder / "policy" / "weights") == weights;
}

}  // namespace sluice::engine::toy
