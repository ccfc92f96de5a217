#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/files/user_path.h"
#include "base/text/printable.h"
#include "base/text/shell_word.h"
#include "base/text/strings.h"
#include "cli/init/commands.h"
#include "cli/init/init_data.h"
#include "cli/init/init_fit.h"
#include "cli/init/init_model.h"
#include "cli/init/init_scorer.h"
#include "cli/init/init_sizes.h"
#include "cli/init/init_text.h"
#include "cli/pipeline/load.h"
#include "cli/process/exit_codes.h"
#include "cli/terminal/output_file.h"
#include "cli/terminal/terminal.h"
#include "data/source_files.h"
#include "engine/memory/memory_needs.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

struct NamedKind {
  const char* name;
  InitKind kind;
  InitNeeds needs;
};
constexpr std::array kInitKinds{
    NamedKind{"grpo", InitKind::kGrpo, InitNeeds::kAnswers}, NamedKind{"ppo", InitKind::kPpo, InitNeeds::kAnswers},
    NamedKind{"sft", InitKind::kSft, InitNeeds::kCompletions}, NamedKind{"dpo", InitKind::kDpo, InitNeeds::kPairs},
    NamedKind{"reward", InitKind::kReward, InitNeeds::kPairs}};

// A path of the command line as a file in `folder` has it: relative ones start there. The id of a model stays one.
std::string path_in_file(const std::string& written, const fs::path& folder) {
  const fs::path path = expanded_path(written);
  const bool is_relative = path.is_relative() && !written.starts_with('$');
  const bool is_path = is_there(path) || written.find_first_of("*?[") != std::string::npos;
  if (!is_relative || !is_path) return written;
  const fs::path to = absolute_path(path).lexically_normal(), from = absolute_path(folder).lexically_normal();
  const auto top_of = [](const fs::path& absolute) { return *std::next(absolute.begin()); };
  fs::path shown = top_of(to) == top_of(from) ? to.lexically_relative(from) : to;
  if (*shown.begin() == "~") shown = "." / shown;  // a folder of that name, not the home folder
  return unexpanded_path(shown.string());
}

// The first device that this machine has; empty: the CPU alone.
std::string device_of(const engine::Registry& registry) {
  for (const std::string& name : registry.device_names()) {
    const std::string kind = name.substr(0, name.find(':'));
    const engine::DeviceKind* device = registry.find_device_kind(kind);
    if (device->missing && !device->missing(0)) return kind + ":0";
  }
  return {};
}

std::vector<std::string> answers_of(const InitData& data, const std::string& field) {
  std::vector<std::string> answers;
  for (const Json& row : data.rows) answers.push_back(text_of_field(row, field));
  return answers;
}

void say(const char* word, const std::string& text) { print_text(padded(word, 9) + printable(text) + "\n", stderr); }

std::string fields_text(const InitPipeline& pipeline) {
  const InitFields& fields = pipeline.fields;
  std::vector<std::string> parts;
  if (!fields.messages.empty()) parts.push_back("conversations from " + fields.messages);
  if (!fields.prompt.empty()) parts.push_back("prompt from " + join(fields.prompt, " and "));
  if (!fields.answer.empty()) parts.push_back("answer from " + fields.answer);
  if (!fields.chosen.empty()) parts.push_back("pairs from " + fields.chosen + " and " + fields.rejected);
  return join(parts, ", ");
}

std::string how_texts_are_written(const InitModel& model, const InitPipeline& chosen) {
  if (!model.has_template) return "without a chat template: texts are sent as they are";
  return chosen.passes_over_template ? "texts without a prompt are learned as they are" : "its chat template writes the prompts";
}

void require_utf8(const std::string& path) {
  if (!is_utf8(path)) throw UserError("the path is not UTF-8, which a pipeline file is: " + path, "rename it");
}

void say_what_was_chosen(const InitArguments& arguments, const InitModel& model, const InitData& data,
                         const FittedPipeline& fitted) {
  const InitPipeline& chosen = fitted.pipeline;
  say("model", arguments.model + ": " + human_count(static_cast<double>(model.parameters)) + " parameters, stored as " +
                   (model.stored.empty() ? "nothing" : model.stored) + ", computed in " +
                   (chosen.bfloat16 ? "bfloat16" : "float32") + " on " + (chosen.device.empty() ? "the CPU" : chosen.device) +
                   "; " + how_texts_are_written(model, chosen));
  say("data", arguments.data + ": " + plural(static_cast<int64_t>(data.count), "row") + "; " + fields_text(chosen));
  if (!chosen.scorer.type.empty()) say("scorer", chosen.scorer.type + ": " + chosen.scorer.why);
  say("lengths", chosen.max_tokens > 0
                     ? "max_tokens = " + std::to_string(chosen.max_tokens) + ", from the first rows"
                     : "max_prompt_tokens = " + std::to_string(chosen.max_prompt_tokens) +
                           ", max_new_tokens = " + std::to_string(chosen.max_new_tokens) + ", from the first rows");
  const engine::MemoryNeed need = engine::tightest_need(fitted.plan);
  say("memory", (fitted.too_much.empty() ? "" : "to train all weights with all tokens takes " + fitted.too_much + "; ") +
                    std::string(chosen.lora ? "adapters (lora)" : "all weights are trained") + " and " +
                    plural(chosen.tokens_in_flight, "token") + " in flight take at most " +
                    human_bytes(need.memory.total_bytes()) +
                    (need.is_known() ? " of " + human_bytes(need.memory.machine_bytes) : ""));
  const std::string file = arguments.output.empty() ? "" : shell_word(arguments.output.string());
  say("next", file.empty() ? "write it to a file with -o " + arguments.kind + ".toml"
                           : "rlhf-run validate " + file + " --data, then " + command_to_run(arguments.output.string()));
}

void require_free(const InitArguments& arguments) {
  if (arguments.output.empty() || arguments.force || !is_there(arguments.output)) return;
  throw UserError(arguments.output.string() + " is there already", "--force overwrites it; -o names another file");
}

// --force is meant for the pipeline of before, never for what it learns from.
void require_not_the_data(const InitArguments& arguments) {
  for (const fs::path& file : data::source_files({expanded_path(arguments.data)}))
    if (is_same_file(file, arguments.output))
      throw UserError(arguments.output.string() + " is a file of the data", "-o names another file");
}

}  // namespace

int init_pipeline(const InitArguments& arguments) {
  require_free(arguments);
  for (const std::string& path : {arguments.model, arguments.data}) require_utf8(path);
  const NamedKind& kind = *std::ranges::find(kInitKinds, arguments.kind, [](const NamedKind& k) { return std::string(k.name); });
  require_not_the_data(arguments);
  const auto registry = make_registry();
  const InitModel model = look_at_model(arguments.model);
  const InitData data = read_init_data(expanded_path(arguments.data));
  const fs::path folder = arguments.output.has_parent_path() ? arguments.output.parent_path() : fs::path(".");
  InitPipeline pipeline{
      .kind = kind.kind, .model = path_in_file(arguments.model, folder), .data = path_in_file(arguments.data, folder)};
  pipeline.fields = find_fields(data, arguments.data, kind.needs, {arguments.prompt_field, arguments.answer_field});
  if (kind.needs == InitNeeds::kAnswers) pipeline.scorer = scorer_for(answers_of(data, pipeline.fields.answer));
  pipeline.bfloat16 = model.is_half;
  pipeline.device = device_of(*registry);
  pipeline.memory_gib = arguments.memory_gib;
  choose_sizes(model, data, pipeline);
  const std::string file = arguments.output.empty() ? arguments.kind + ".toml" : arguments.output.string();
  const FittedPipeline fitted = fit_pipeline_to_memory(*registry, pipeline, file, folder.string());
  const std::string text = init_text(fitted.pipeline, file);
  write_output(arguments.output, text);
  print_warnings(fitted.warnings);
  say_what_was_chosen(arguments, model, data, fitted);
  return kDone;
}

}  // namespace sluice::cli
