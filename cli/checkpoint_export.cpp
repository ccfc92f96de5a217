#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/folder.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/path_kind.h"
#include "base/printable.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/resume_point.h"
#include "models/folder/safetensors.h"
#include "models/folder/safetensors_writer.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

ResumePoint chosen_point(const CheckpointsArguments& arguments) {
  if (arguments.iterations) return point_at(arguments.run_folder, *arguments.iterations);
  const auto newest = newest_point(arguments.run_folder);
  if (!newest) throw UserError(arguments.run_folder.string() + " has no checkpoints");
  return *newest;
}

std::string chosen_model(const fs::path& checkpoint, const std::string& wanted) {
  std::vector<std::string> names;
  for (const fs::path& entry : entries_of(checkpoint)) {
    if (name_kind(entry) == PathKind::kFolder) names.push_back(entry.filename().string());
  }
  if (wanted.empty() && names.size() == 1) return names.front();
  const std::string all = names.empty() ? "it holds no model" : "it holds " + join(names, ", ");
  if (wanted.empty()) throw UserError("which model of " + checkpoint.string() + "?", all + ": choose one with --model");
  if (std::ranges::find(names, wanted) == names.end())
    throw UserError(checkpoint.string() + " holds no model " + sluice::quoted(wanted), all);
  return wanted;
}

void copy_durably(const fs::path& from, const fs::path& to) {
  const MappedFile source(from);
  OutputFile target(to);
  source.for_each_piece([&](std::string_view piece) { target.write(piece); });
  target.close();
}

bool holds_tensors(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.starts_with("model") && (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json"));
}

// Adapters go with their model as they are. No run makes links in a checkpoint, and what they lead to is not to be handed on.
void copy_folder(const fs::path& from, const fs::path& to, bool with_tensors) {
  for (const fs::path& entry : entries_of(from)) {
    const fs::path target = to / entry.filename();
    const PathKind kind = name_kind(entry);
    if (kind == PathKind::kLink) throw UserError(entry.string() + " is a symbolic link, which no run puts into a checkpoint");
    if (kind == PathKind::kFolder) {
      make_folders(target);
      copy_folder(entry, target, true);
    } else if (with_tensors || !holds_tensors(entry)) {
      copy_durably(entry, target);
    }
  }
}

void write_converted(const fs::path& from, const fs::path& to, const std::string& dtype) {
  if (!is_there(from / "config.json")) {
    throw UserError(from.string() + " holds adapters without their model, which have one type", "leave --dtype out");
  }
  Json config = read_json(from / "config.json");
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = dtype;
  write_file_atomically(to / "config.json", config.dump(2) + "\n");
  const models::TensorFolder source(from);
  std::vector<models::OutputTensor> tensors;
  for (const std::string& name : source.names())
    tensors.push_back({.name = name, .parts = {source.read(name, source.entry(name).shape)}});
  const at::ScalarType type = dtype == "bfloat16" ? at::kBFloat16 : dtype == "float16" ? at::kHalf : at::kFloat;
  models::write_model_files(to, tensors, {.dtype = type});
}

void write_export(const fs::path& from, const fs::path& to, const std::string& dtype) {
  make_folders(to);
  copy_folder(from, to, dtype.empty());
  if (!dtype.empty()) write_converted(from, to, dtype);
  sync_folder(to);
}

}  // namespace

int export_checkpoint(const CheckpointsArguments& arguments) {
  const fs::path& target = arguments.target;
  if (is_there(target) && !(is_folder(target) && entries_of(target).empty())) {
    throw UserError(target.string() + " is there already", "name a new folder with --to");
  }
  const ResumePoint point = chosen_point(arguments);
  const fs::path source = point.place.folder / chosen_model(point.place.folder, arguments.model);
  const fs::path unfinished = (target.has_filename() ? target : target.parent_path()).string() + ".tmp";
  remove_tree(unfinished);
  try {
    write_export(source, unfinished, arguments.dtype);
    replace_path(unfinished, target);
  } catch (...) {
    remove_tree(unfinished);
    throw;
  }
  std::printf("%s, after %s: %s\n", printable(source.string()).c_str(), plural(point.place.iterations, "iteration").c_str(),
              printable(target.string()).c_str());
  return kDone;
}

}  // namespace sluice::cli
