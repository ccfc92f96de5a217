#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/folder.h"
#include "base/files/mapped_file.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/checkpoints/base_model.h"
#include "cli/checkpoints/commands.h"
#include "cli/checkpoints/generation_config.h"
#include "cli/checkpoints/model_card.h"
#include "cli/pipeline/load.h"
#include "cli/process/exit_codes.h"
#include "cli/run_folder/damaged_lines.h"
#include "cli/run_folder/file_of_run.h"
#include "cli/run_folder/metric_series.h"
#include "cli/run_folder/resume_point.h"
#include "engine/contract/run_folder.h"
#include "models/folder/hub_cache.h"
#include "models/folder/safetensors.h"
#include "models/folder/safetensors_writer.h"
#include "text/chat/chat_template.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

ResumePoint chosen_point(const CheckpointsArguments& arguments) {
  if (arguments.iterations) return point_at(arguments.run_folder, *arguments.iterations);
  const auto newest = newest_point(arguments.run_folder);
  if (!newest && !is_folder(arguments.run_folder))
    throw UserError(arguments.run_folder.string() + " is not a folder", "name the folder of a run");
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

constexpr const char *kAdapterFolder = "adapter", *kAdapterConfig = "adapter_config.json";

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

// What reads and writes the text of a model, for who has only a part of its folder.
void copy_text_files(const fs::path& from, const fs::path& to) {
  for (const fs::path& entry : entries_of(from)) {
    const std::string name = entry.filename().string();
    const bool is_text = name != "config.json" && name != "generation_config.json" && !holds_tensors(entry);
    if (is_text && name_kind(entry) == PathKind::kFile) copy_durably(entry, to / name);
  }
}

constexpr const char* kValueHead = "score.weight";  // of a model that also speaks: transformers has no class for both

struct Conversion {
  std::string dtype;        // empty: that of the files
  bool value_head = false;  // is left out
  bool any() const { return value_head || !dtype.empty(); }
};

at::ScalarType type_called(const Json& dtype) {
  return dtype == "bfloat16" ? at::kBFloat16 : dtype == "float16" ? at::kHalf : at::kFloat;
}

void write_converted(const fs::path& from, const fs::path& to, const Conversion& conversion) {
  if (!is_there(from / "config.json")) {
    throw UserError(from.string() + " holds adapters without their model, which have one type", "leave --dtype out");
  }
  Json config = read_json(from / "config.json");
  const char* key = config.contains("dtype") ? "dtype" : "torch_dtype";
  if (!conversion.dtype.empty()) config[key] = conversion.dtype;
  if (conversion.value_head) {
    for (const char* of_scores : {"num_labels", "id2label", "label2id"}) config.erase(of_scores);
  }
  write_file_atomically(to / "config.json", config.dump(2) + "\n");
  const models::TensorFolder source(from);
  std::vector<models::OutputTensor> tensors;
  for (const std::string& name : source.names()) {
    if (conversion.value_head && name == kValueHead) continue;
    tensors.push_back({.name = name, .parts = {source.read(name, source.entry(name).shape)}});
  }
  models::write_model_files(to, tensors, {.dtype = type_called(config.value(key, Json()))});
}

// What of a checkpoint's folder is wanted.
fs::path chosen_part(const fs::path& model, const std::string& save) {
  const bool alone = is_there(model / kAdapterConfig), beside = is_there(model / kAdapterFolder / kAdapterConfig);
  if (save == "merged" && alone) {
    throw UserError(model.string() + " holds adapters without their model",
                    "export them and merge_and_unload() with PEFT, or train with lora = { save = \"both\", ... }");
  }
  if (save != "adapter" || alone) return model;
  if (beside) return model / kAdapterFolder;
  throw UserError(model.string() + " holds no adapters",
                  "they are there when a model is trained with lora = { save = \"both\", ... }; leave --save out");
}

// PEFT looks for the base model where its id says, on any machine.
void name_base(const fs::path& config_file, const BaseModel& base) {
  if (base.id.empty() || !is_there(config_file)) return;
  Json config = read_json(config_file);
  config["base_model_name_or_path"] = base.id;
  if (!base.revision.empty()) config["revision"] = base.revision;
  write_file_atomically(config_file, config.dump(2) + "\n");
}

BaseModel base_of(const CheckpointsArguments& arguments, const RecordedPipeline& pipeline, const std::string& model) {
  BaseModel base = base_model(pipeline, pipeline.described_by(model));
  if (arguments.base_model.empty()) return base;
  const auto named = models::hub_model(arguments.base_model);
  if (!named)
    throw UserError("--base-model: " + sluice::quoted(arguments.base_model) + " is no id of a model of the Hub",
                    "such as Qwen/Qwen2.5-0.5B-Instruct");
  base.id = named->id;
  base.revision = named->revision == "main" ? "" : named->revision;
  return base;
}

// A model is worth having without the story of its run.
Json series_of(const fs::path& run_folder) {
  const auto metrics = file_of_run(run_folder, engine::kMetricsFile);
  if (!metrics) return {};
  try {
    RunSeries series(*metrics);
    Json read = series.now();
    warn_of_damaged_lines(series.damage());
    return read;
  } catch (const UserError& error) {
    Problem problem = error.problems().front();
    problem.severity = Severity::kWarning;
    problem.notes.push_back("the model card tells nothing of the metrics");
    print_warnings({problem});
    return {};
  }
}

void write_export(const CheckpointsArguments& arguments, const ResumePoint& point, const std::string& model, const fs::path& to) {
  const RecordedPipeline pipeline(point.manifest);
  const auto registry = make_registry();
  const std::string head = pipeline.text("models." + pipeline.described_by(model), "head");
  const fs::path whole = point.place.folder / model, from = chosen_part(whole, arguments.save);
  const Conversion conversion{.dtype = arguments.dtype, .value_head = head == "policy+value" && is_there(from / "config.json")};
  make_folders(to);
  copy_folder(from, to, !conversion.any());
  if (arguments.save == "merged") remove_tree(to / kAdapterFolder);
  if (from != whole) copy_text_files(whole, to);
  if (conversion.any()) write_converted(from, to, conversion);

  const BaseModel base = base_of(arguments, pipeline, model);
  name_base(to / kAdapterConfig, base);
  name_base(to / kAdapterFolder / kAdapterConfig, base);
  const bool is_adapter = is_there(to / kAdapterConfig), is_scorer = head == "value";
  if (!is_adapter && !is_scorer)
    write_file_atomically(to / "generation_config.json", generation_config(to, pipeline, model, *registry).dump(2) + "\n");
  const fs::path& target = arguments.target;
  const ExportedModel exported{.manifest = point.manifest,
                               .series = series_of(arguments.run_folder),
                               .name = model,
                               .title = (target.has_filename() ? target : target.parent_path()).filename().string(),
                               .is_adapter = is_adapter,
                               .is_scorer = is_scorer,
                               .has_template = text::ChatTemplate::is_in(to),
                               .base = base,
                               .license = arguments.license};
  write_file_atomically(to / "README.md", model_card(exported, *registry));
  sync_folder(to);
}

// Of what is not there yet, by the folder above it.
fs::path where_it_leads(const fs::path& path) {
  const fs::path whole = absolute_path(path);
  if (const auto real = real_path(whole)) return *real;
  return whole.has_relative_path() ? (where_it_leads(whole.parent_path()) / whole.filename()).lexically_normal() : whole;
}

bool is_in_folder(const fs::path& path, const fs::path& folder) {
  const fs::path inside = where_it_leads(path), outside = where_it_leads(folder);
  return std::mismatch(outside.begin(), outside.end(), inside.begin(), inside.end()).first == outside.end();
}

}  // namespace

int export_checkpoint(const CheckpointsArguments& arguments) {
  const fs::path& target = arguments.target;
  if (is_there(target) && !(is_folder(target) && entries_of(target).empty())) {
    throw UserError(target.string() + " is there already", "name a new folder with --to");
  }
  if (is_in_folder(target, arguments.run_folder / "checkpoints"))
    throw UserError(target.string() + " is among the checkpoints of the run, which it would be taken for one of",
                    "name a folder elsewhere with --to");
  const ResumePoint point = chosen_point(arguments);
  const std::string model = chosen_model(point.place.folder, arguments.model);
  const fs::path unfinished = (target.has_filename() ? target : target.parent_path()).string() + ".tmp";
  remove_tree(unfinished);
  try {
    write_export(arguments, point, model, unfinished);
    replace_path(unfinished, target);
  } catch (...) {
    remove_tree(unfinished);
    throw;
  }
  std::printf("%s, after %s: %s\n", printable((point.place.folder / model).string()).c_str(),
              plural(point.place.iterations, "iteration").c_str(), printable(target.string()).c_str());
  return kDone;
}

}  // namespace sluice::cli
