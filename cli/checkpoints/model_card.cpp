#include "cli/checkpoints/model_card.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/files/user_path.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "base/text/url_passwords.h"
#include "cli/checkpoints/card_metrics.h"

namespace sluice::cli {
namespace {

using Node = RecordedPipeline::Node;

constexpr std::string_view kTrainer = "train_";
constexpr const char* kPolicyTrainer = "train_ppo";  // of any policy gradient: what it is called depends on its advantages

// A text of YAML, which is one of JSON too.
std::string yaml(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string cell(std::string text) {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) text.replace(at, 1, "\\|");
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// Longer than any run of backticks inside, so that no text ends its own block.
std::string fence_for(const std::string& text) {
  size_t longest = 0, run = 0;
  for (const char c : text) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  return std::string(std::max<size_t>(3, longest + 1), '`');
}

std::string block(const std::string& language, const std::string& text) {
  const std::string fence = fence_for(text);
  return fence + language + "\n" + text + fence + "\n";
}

std::vector<Node> trainers_of(const RecordedPipeline& pipeline, const std::string& model) {
  std::vector<Node> trainers;
  for (const Node& node : pipeline.nodes()) {
    if (node.type.starts_with(kTrainer) && pipeline.mentions(node, model)) trainers.push_back(node);
  }
  return trainers;
}

// "grpo": what people call it who train in this way.
std::string algorithm_of(const RecordedPipeline& pipeline, const Node& trainer) {
  const std::string objective = pipeline.text(trainer.table(), "objective.type");
  if (trainer.type != kPolicyTrainer) return objective.empty() ? trainer.type.substr(kTrainer.size()) : objective;
  const Json inputs = pipeline.value(trainer.table(), "inputs");
  if (!inputs.is_array() || inputs.empty() || !inputs.front().is_string()) return objective;
  const std::string estimator = pipeline.text("nodes." + inputs.front().get<std::string>(), "type");
  return estimator == "gae" || estimator.empty() ? trainer.type.substr(kTrainer.size()) : estimator;
}

std::string license_lines(const ExportedModel& model) {
  if (!model.license.empty()) return "license: " + yaml(model.license) + "\n";
  if (model.base.license.empty()) return "license: other  # fill in: nothing says under which license this model may be used\n";
  std::string lines = "license: " + yaml(model.base.license) + "\n";
  if (!model.base.license_name.empty()) lines += "license_name: " + yaml(model.base.license_name) + "\n";
  if (!model.base.license_link.empty()) lines += "license_link: " + yaml(model.base.license_link) + "\n";
  return lines;
}

std::string front_matter(const ExportedModel& model, const RecordedPipeline& pipeline) {
  std::string text = "---\n" + license_lines(model);
  if (!model.base.id.empty()) text += "base_model: " + yaml(model.base.id) + "\n";
  if (model.base.id.empty() && !model.base.random) text += "# base_model: fill in ORG/NAME of the model that was trained\n";
  text += std::string("library_name: ") + (model.is_adapter ? "peft" : "transformers") + "\n";
  text += std::string("pipeline_tag: ") + (model.is_scorer ? "text-classification" : "text-generation") + "\n";
  std::vector<std::string> tags = {"rlhf", "sluice"};
  for (const Node& trainer : trainers_of(pipeline, model.name)) tags.push_back(algorithm_of(pipeline, trainer));
  if (!pipeline.text("models." + model.name, "lora.save").empty()) tags.push_back("lora");
  text += "tags:\n";
  for (size_t i = 0; i < tags.size(); ++i) {
    if (std::find(tags.begin(), tags.begin() + static_cast<ptrdiff_t>(i), tags[i]) == tags.begin() + static_cast<ptrdiff_t>(i))
      text += "- " + yaml(tags[i]) + "\n";
  }
  return text + "---\n";
}

std::string introduction(const ExportedModel& model, const RecordedPipeline& pipeline) {
  const std::string base = model.base.random        ? "random weights"
                           : !model.base.id.empty() ? "[" + model.base.id + "](https://huggingface.co/" + model.base.id + ")"
                                                    : "a model that has no name on the Hub yet";
  std::string text = "\n# " + cell(model.title) + "\n\n" + (model.is_adapter ? "Adapters (LoRA) of " : "Trained from ") + base;
  if (!model.base.revision.empty()) text += " at commit `" + model.base.revision + "`";
  text += ": model `" + model.name + "` of the pipeline `" + pipeline.text("pipeline", "name") + "`, after " +
          plural(model.manifest.iterations, "iteration") + ". Saved by Sluice " + model.manifest.program_version + " at " +
          model.manifest.saved_at + ".\n";
  if (model.license.empty() && model.base.license.empty()) {
    text +=
        "\n**License: to be filled in.** The license of the base model holds for this one too. Put its identifier in place of\n"
        "`other` above (https://huggingface.co/docs/hub/repositories-licenses).\n";
  }
  return text;
}

std::string loading(const ExportedModel& model) {
  const std::string name = yaml(model.title);
  if (model.is_adapter) {
    const std::string kind = model.is_scorer ? "SequenceClassification" : "CausalLM";
    return "\n## How to load it\n\n" + block("python", "from peft import AutoPeftModelFor" + kind +
                                                           "\nfrom transformers import AutoTokenizer\n\n"
                                                           "tokenizer = AutoTokenizer.from_pretrained(" +
                                                           name + ")\nmodel = AutoPeftModelFor" + kind + ".from_pretrained(" +
                                                           name + ")\nmodel = model.merge_and_unload()  # if you like\n");
  }
  if (model.is_scorer) {
    return "\n## How to load it\n\n" + block("python",
                                             "from transformers import AutoModelForSequenceClassification, AutoTokenizer\n\n"
                                             "tokenizer = AutoTokenizer.from_pretrained(" +
                                                 name + ")\nmodel = AutoModelForSequenceClassification.from_pretrained(" + name +
                                                 ")\nscore = model(**tokenizer(\"...\", return_tensors=\"pt\")).logits\n");
  }
  const std::string prompt = model.has_template
                                 ? "inputs = tokenizer.apply_chat_template([{\"role\": \"user\", \"content\": \"...\"}],\n"
                                   "                                       add_generation_prompt=True, "
                                   "return_dict=True, return_tensors=\"pt\")\n"
                                 : "inputs = tokenizer(\"...\", return_tensors=\"pt\")\n";
  return "\n## How to load it\n\n" +
         block("python",
               "from transformers import AutoModelForCausalLM, AutoTokenizer\n\ntokenizer = AutoTokenizer.from_pretrained(" +
                   name + ")\nmodel = AutoModelForCausalLM.from_pretrained(" + name + ", dtype=\"auto\")\n" + prompt +
                   "output = model.generate(**inputs, max_new_tokens=256)[0]\n"
                   "print(tokenizer.decode(output[inputs[\"input_ids\"].shape[1]:], skip_special_tokens=True))\n") +
         "\n`generation_config.json` has the sampling of the rollout.\n";
}

std::string summary_of(const engine::Registry& registry, const std::string& type) {
  const engine::NodeType* known = registry.find(type);
  return known == nullptr ? "" : known->info.summary;
}

std::string algorithm(const ExportedModel& model, const RecordedPipeline& pipeline, const engine::Registry& registry) {
  std::string text = "\n## How it was trained\n";
  for (const Node& trainer : trainers_of(pipeline, model.name)) {
    const std::string objective = pipeline.text(trainer.table(), "objective.type");
    const std::string table = "models." + model.name;
    text += "\n" + algorithm_of(pipeline, trainer) + ": `" + trainer.type + "`" +
            (objective.empty() ? "" : " with the objective `" + objective + "`") + ", optimizer `" +
            pipeline.text(table, "optimizer.type") + "` with a learning rate of " +
            pipeline.value(table, "optimizer.learning_rate").dump() + ".\n";
  }
  text += "\n| node | type | what it does |\n|---|---|---|\n";
  for (const Node& node : pipeline.nodes())
    text += "| `" + node.name + "` | `" + node.type + "` | " + cell(summary_of(registry, node.type)) + " |\n";
  return text;
}

// The name alone of what a path names: where it lay is nobody else's business.
std::string file_names(const Json& paths) {
  std::vector<std::string> names;
  const auto add = [&](const Json& path) {
    if (path.is_string()) names.push_back("`" + std::filesystem::path(path.get<std::string>()).filename().string() + "`");
  };
  if (paths.is_array()) {
    for (const Json& path : paths) add(path);
  } else {
    add(paths);
  }
  return join(names, ", ");
}

// What sources keep of their data, whatever type they are of; see nodes/sources/row_cursor.
std::string data(const engine::Manifest& manifest, const RecordedPipeline& pipeline) {
  std::string rows;
  for (const Node& node : pipeline.nodes()) {
    const auto state = manifest.nodes.find(node.name);
    if (state == manifest.nodes.end()) continue;
    const auto integer = [&](const char* name) {
      const auto found = state->second.values.find(name);
      return found == state->second.values.end() ? nullptr : std::get_if<int64_t>(&found->second);
    };
    const int64_t* fingerprint = integer("fingerprint");
    if (fingerprint == nullptr) continue;
    char digits[24];
    std::snprintf(digits, sizeof digits, "%08" PRIx64, static_cast<uint64_t>(*fingerprint));
    const int64_t* drawn = integer("rows_drawn");  // 0 of a path that measures: it begins anew each time
    rows += "| `" + node.name + "` | " + cell(file_names(pipeline.value(node.table(), "path"))) + " | `" + digits + "` | " +
            (drawn == nullptr || *drawn == 0 ? "" : std::to_string(*drawn)) + " |\n";
  }
  if (rows.empty()) return {};
  return "\n## Data\n\n| source | files | fingerprint of seed, order and rows | rows drawn |\n|---|---|---|---|\n" + rows;
}

std::string metrics(const ExportedModel& model, const RecordedPipeline& pipeline) {
  if (model.series.is_null()) return {};
  std::string text;
  if (const std::string table = curve_table(model.series, model.manifest.iterations); !table.empty())
    text += "\n## Training\n\n" + table;
  if (const std::string table = evaluation_table(model.series, pipeline, model.manifest.iterations); !table.empty())
    text += "\n## Evaluation\n\nMeasured by the run itself:\n\n" + table;
  return text;
}

}  // namespace

std::string model_card(const ExportedModel& model, const engine::Registry& registry) {
  const RecordedPipeline pipeline(model.manifest);
  return front_matter(model, pipeline) + introduction(model, pipeline) + loading(model) + algorithm(model, pipeline, registry) +
         data(model.manifest, pipeline) + metrics(model, pipeline) +
         "\n## Pipeline\n\n<details>\n<summary>All of its keys, with the values that the run had</summary>\n\n" +
         block("toml", without_passwords(pipeline.toml(environment_value("HOME")))) + "\n</details>\n";
}

}  // namespace sluice::cli
