#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>

#include "base/error.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/resume_point.h"
#include "engine/out_of_memory.h"
#include "engine/version.h"
#include "models/folder/hub_cache.h"
#include "models/tensor_pool.h"

namespace sluice::cli {
namespace {

using Command = std::function<int()>;

bool is_subcommand(const CLI::App& app, const std::string& word) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) { return command->get_name() == word; });
}

// `rlhf-run FILE` means `rlhf-run run FILE`, `rlhf-run checkpoints RUN` means `rlhf-run checkpoints list RUN`, and there the subcommand
// may also come behind the folder.
std::vector<std::string> with_short_forms(int argc, char** argv, const CLI::App& app) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool named = words.empty() || words[0].empty() || words[0][0] == '-' || is_subcommand(app, words[0]);
  const bool looks_like_file = !words.empty() && (words[0].ends_with(".toml") || words[0].find('/') != std::string::npos);
  if (!named && looks_like_file) words.insert(words.begin(), "run");
  if (words.size() < 2 || words[0] != "checkpoints" || words[1].starts_with('-')) return words;
  const CLI::App& checkpoints = *app.get_subcommand("checkpoints");
  if (is_subcommand(checkpoints, words[1])) return words;
  if (words.size() > 2 && is_subcommand(checkpoints, words[2])) std::swap(words[1], words[2]);
  else words.insert(words.begin() + 1, "list");
  return words;
}

// Empty when `words` begin with a subcommand or an option. CLI11 itself would only say that a subcommand is required.
std::string unknown_subcommand(const std::vector<std::string>& words, const CLI::App& app) {
  if (words.empty() || words[0].starts_with('-') || is_subcommand(app, words[0])) return {};
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  const std::string nearest = did_you_mean(words[0], names);
  return "error: " + sluice::quoted(words[0]) + " is neither a subcommand nor a pipeline file (*.toml)\n      = help: " +
         (nearest.empty() ? "rlhf-run --help lists the subcommands" : "did you mean " + nearest + "?") + "\n";
}

void add_sets(CLI::App& command, std::vector<std::string>& sets) {
  command.add_option("--set", sets, "override one key: --set nodes.generate.max_new_tokens=64 (may be repeated)")
      ->type_name("KEY=VALUE")->expected(1)->allow_extra_args(false)->take_all();
}

void add_pipeline(CLI::App& command, PipelineArguments& arguments) {
  command.add_option("pipeline", arguments.file, "the pipeline, a TOML file")->required();
  add_sets(command, arguments.sets);
}

// What the arguments are parsed into. Lives as long as the parser.
struct Arguments {
  PipelineArguments pipeline;
  RunArguments run;
  std::string run_resume;
  ResumeArguments resume;
  CheckpointsArguments checkpoints;
  std::filesystem::path run_folder;
  bool once = false;
  std::string validate_format = "text";
  std::string graph_format = "dot";
  std::string plan_format = "text";
  bool config = false;
  std::vector<std::string> plugins;
  bool markdown = false;
  std::string type;
  std::vector<std::string> sets;
  std::string preset;
  SimulateArguments simulate;
  SampleArguments sample;
  RenderArguments render;
  bool no_generation_prompt = false;
  bool add_special = false;
  bool info_json = false;
  std::string dtype = "float32";
};

void add_pipeline_commands(CLI::App& app, Arguments& a, Command& chosen) {
  CLI::App& run = *app.add_subcommand("run", "run a pipeline (also: rlhf-run FILE)");
  add_pipeline(run, a.run.pipeline);
  run.add_option("--run-dir", a.run.run_folder, "the run folder (default: runs/NAME-TIME, with --resume runs/NAME)");
  run.add_option("--resume", a.run_resume, "auto: go on with what is in the run folder, or start")->check(CLI::IsMember({"auto"}));
  run.add_flag("--accept-changes", a.run.accept_changes, "go on although the pipeline has changed in ways that change results");
  run.callback([&] {
    chosen = [&] {
      a.run.may_go_on = a.run_resume == "auto";
      return run_pipeline(a.run);
    };
  });

  CLI::App& validate = *app.add_subcommand("validate", "prove a pipeline without running it");
  add_pipeline(validate, a.pipeline);
  validate.add_option("--format", a.validate_format, "text or json")->check(CLI::IsMember({"text", "json"}));
  validate.callback([&] { chosen = [&] { return validate_pipeline(a.pipeline, a.validate_format); }; });

  CLI::App& plan = *app.add_subcommand("plan", "what would run where, in which order, with how much memory");
  add_pipeline(plan, a.pipeline);
  plan.add_option("--format", a.plan_format, "text or json")->check(CLI::IsMember({"text", "json"}));
  plan.add_flag("--config", a.config, "print the effective pipeline with the origin of every value instead");
  plan.callback([&] { chosen = [&] { return print_plan(a.pipeline, a.plan_format, a.config); }; });

  CLI::App& graph = *app.add_subcommand("graph", "the graph for Graphviz or Mermaid");
  add_pipeline(graph, a.pipeline);
  graph.add_option("--format", a.graph_format, "dot or mermaid")->check(CLI::IsMember({"dot", "mermaid"}));
  graph.callback([&] { chosen = [&] { return print_graph(a.pipeline, a.graph_format); }; });
}

void add_run_commands(CLI::App& app, Arguments& a, Command& chosen) {
  CLI::App& resume = *app.add_subcommand("resume", "go on with a run from its newest intact checkpoint");
  resume.add_option("folder", a.resume.run_folder, "the run folder")->required();
  resume.add_option("--from", a.resume.from, "an older checkpoint, by its count of iterations");
  add_sets(resume, a.resume.sets);
  resume.add_flag("--accept-changes", a.resume.accept_changes, "also where they change results");
  resume.callback([&] { chosen = [&] { return resume_run(a.resume); }; });

  CLI::App& top = *app.add_subcommand("top", "watch a run: what works, what waits for what, what is in flight (q quits)");
  top.add_option("folder", a.run_folder, "the run folder")->required();
  top.add_flag("--once", a.once, "print it once, also on a terminal");
  top.callback([&] { chosen = [&] { return show_top(a.run_folder, a.once); }; });
}

void add_checkpoint_commands(CLI::App& app, CheckpointsArguments& a, Command& chosen) {
  CLI::App& checkpoints = *app.add_subcommand("checkpoints", "the checkpoints of a run (also: rlhf-run checkpoints RUN, which lists them)");
  checkpoints.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Command command) {
    CLI::App* sub = checkpoints.add_subcommand(name, help);
    sub->add_option("run", a.run_folder, "the run folder")->required();
    sub->callback([&chosen, command] { chosen = command; });
    return sub;
  };
  CLI::App* list = add("list", "iterations, figure, size, and whether every byte is as it was saved", [&] { return list_checkpoints(a); });
  list->add_option("--format", a.format, "text or json")->check(CLI::IsMember({"text", "json"}));

  CLI::App* verify = add("verify", "read every byte; damage is named by file and tensor", [&] { return verify_checkpoints(a); });
  verify->add_option("iterations", a.iterations, "only the one after so many iterations");

  CLI::App* prune = add("prune", "remove what [checkpoint] keep_last and keep_best do not keep", [&] { return prune_checkpoints(a); });
  prune->add_option("--keep-last", a.keep_last, "how many of the newest stay; 0: all")->check(CLI::NonNegativeNumber);
  prune->add_option("--keep-best", a.keep_best, "a figure of metrics.jsonl: the one where it is best stays too");
  prune->add_option("--best", a.best, "highest or lowest")->check(CLI::IsMember({"highest", "lowest"}));
  prune->add_flag("--dry-run", a.dry_run, "only say what would be removed");

  CLI::App* copy = add("export", "write one model of a checkpoint as a Hugging Face folder", [&] { return export_checkpoint(a); });
  copy->add_option("iterations", a.iterations, "after so many iterations (default: the newest intact one)");
  copy->add_option("--model", a.model, "its name in the pipeline (default: the only one)");
  copy->add_option("--to", a.target, "a new folder")->required();
  copy->add_option("--dtype", a.dtype, "of the tensors: float32, bfloat16 or float16 (default: as they are)")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}));
}

void add_simulate_command(CLI::App& app, SimulateArguments& a, Command& chosen) {
  CLI::App& simulate = *app.add_subcommand("simulate", "what a run would take and where its time would go, without running it");
  add_pipeline(simulate, a.pipeline);
  CLI::Option* costs = simulate.add_option("--costs", a.costs, "what a run has measured: its folder (default: an estimate from the sizes of the models)");
  simulate.add_option("--gflops", a.gflops, "of a core, for the estimate")->check(CLI::PositiveNumber)->excludes(costs);
  simulate.add_option("--what-if", a.what_ifs, "also with this setting: --what-if schedule.policy_lag=1 (may be repeated)")
      ->type_name("KEY=VALUE")->expected(1)->allow_extra_args(false)->take_all();
  simulate.add_option("--iterations", a.iterations, "fewer than the pipeline says")->check(CLI::PositiveNumber);
  simulate.add_option("--trace", a.trace, "write what each executor does when, as a run's trace.json");
  simulate.add_option("--format", a.format, "text or json")->check(CLI::IsMember({"text", "json"}));
  simulate.callback([&] { chosen = [&] { return simulate_pipeline(a); }; });
}

void add_node_commands(CLI::App& app, Arguments& a, Command& chosen) {
  CLI::App& nodes = *app.add_subcommand("nodes", "list the node types");
  nodes.add_option("--plugin", a.plugins, "also load this plugin")->expected(1)->take_all();
  nodes.add_flag("--markdown", a.markdown, "print the whole reference, as in docs/nodes.md");
  nodes.callback([&] { chosen = [&] { return list_nodes(a.plugins, a.markdown); }; });

  CLI::App& problems = *app.add_subcommand("problems", "list the kinds of problems that validate can report");
  problems.add_flag("--markdown", a.markdown, "print them as the table of docs/pipeline-language.md");
  problems.callback([&] { chosen = [&] { return list_problem_kinds(a.markdown); }; });

  CLI::App& describe = *app.add_subcommand("describe", "all about one node type, objective or preset");
  describe.add_option("type", a.type, "such as gae, objective:ppo_clip or preset:verl")->required();
  describe.add_option("--plugin", a.plugins, "also load this plugin")->expected(1)->take_all();
  describe.callback([&] { chosen = [&] { return describe_type(a.type, a.plugins); }; });

  CLI::App& attempt = *app.add_subcommand("try", "run one node or objective on columns given as JSON on standard input");
  attempt.add_option("type", a.type, "such as gae or objective:ppo_clip")->required();
  attempt.add_option("--set", a.sets, "a parameter: --set lambda=0.95 (may be repeated)")->type_name("KEY=VALUE")->expected(1)->take_all();
  attempt.add_option("--plugin", a.plugins, "also load this plugin")->expected(1)->take_all();
  attempt.add_option("--preset", a.preset, "values for parameters that are not set, as [pipeline] preset gives them");
  attempt.callback([&] { chosen = [&] { return try_one(a.type, a.sets, a.preset, a.plugins); }; });
}

void add_model_commands(CLI::App& app, Arguments& a, Command& chosen) {
  CLI::App& model = *app.add_subcommand("model", "use a model folder, one function at a time");
  model.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Command command) {
    CLI::App* sub = model.add_subcommand(name, help);
    sub->add_option("folder", a.sample.folder, "a Hugging Face model folder, or the id of a model of the Hub in its cache")->required();
    sub->callback([&a, &chosen, command] {
      chosen = [&a, command] {
        a.sample.folder = models::model_folder(a.sample.folder.string());
        return command();
      };
    });
    return sub;
  };
  CLI::App* tokenize = add("tokenize", "JSON strings in, one a line; arrays of ids out", [&] { return model_tokenize(a.sample.folder, a.add_special); });
  tokenize->add_flag("--add-special", a.add_special, "also the tokens that the post-processor adds");
  add("detokenize", "arrays of ids in, one a line; JSON strings out", [&] { return model_detokenize(a.sample.folder); });
  CLI::App* render = add("render", "conversations as JSON in, one a line; the text of the chat template as JSON strings out", [&] {
    a.render.folder = a.sample.folder;
    a.render.generation_prompt = !a.no_generation_prompt;
    return model_render(a.render);
  });
  render->add_flag("--no-generation-prompt", a.no_generation_prompt, "end with the last message, not where the assistant begins to speak");
  render->add_flag("--mask", a.render.mask, "also the bytes that the assistant said");
  render->add_option("--template", a.render.template_file, "another template than the folder's")->check(CLI::ExistingFile);
  CLI::App* logprobs = add("logprobs", "arrays of ids in, one a line; log-probability of each id after the first out",
                           [&] { return model_logprobs(a.sample.folder, a.dtype); });
  logprobs->add_option("--dtype", a.dtype, "of the weights: float32 or bfloat16")->check(CLI::IsMember({"float32", "bfloat16"}));
  CLI::App* info = add("info", "what the folder holds: family, sizes, positions, files", [&] { return model_info(a.sample.folder, a.info_json); });
  info->add_flag("--json", a.info_json, "as one JSON object");
  add("verify", "read every tensor: names, shapes, checksums, finite values", [&] { return model_verify(a.sample.folder); });
  CLI::App* sample = add("sample", "continue a prompt", [&] { return model_sample(a.sample); });
  sample->add_option("--prompt", a.sample.prompt, "the text to continue (default: standard input)");
  sample->add_option("--samples", a.sample.samples, "how many")->check(CLI::PositiveNumber);
  sample->add_option("--max-new-tokens", a.sample.max_new_tokens, "the longest response (default: 256, or what the model has room for)")->check(CLI::PositiveNumber);
  sample->add_option("--temperature", a.sample.temperature, "0: always the likeliest token")->check(CLI::NonNegativeNumber);
  sample->add_option("--top-k", a.sample.top_k, "only the k likeliest tokens; 0: all")->check(CLI::NonNegativeNumber);
  sample->add_option("--top-p", a.sample.top_p, "only the likeliest tokens with this much probability")->check(CLI::Range(0.0, 1.0));
  sample->add_option("--min-p", a.sample.min_p, "only tokens so many times as likely as the likeliest")->check(CLI::Range(0.0, 1.0));
  sample->add_option("--repetition-penalty", a.sample.repetition_penalty, "divides positive logits of tokens that prompt or response have")
      ->check(CLI::PositiveNumber);
  sample->add_option("--presence-penalty", a.sample.presence_penalty, "taken off the logits of tokens that the response has");
  sample->add_option("--frequency-penalty", a.sample.frequency_penalty, "the same, for each time that it has them");
  sample->add_option("--dtype", a.sample.dtype, "to compute in: float32 or bfloat16")->check(CLI::IsMember({"float32", "bfloat16"}));
  sample->add_option("--seed", a.sample.seed, "of the random stream");
  sample->add_flag("--chat", a.sample.chat, "the prompt is a user's message, put into the folder's chat template");
  sample->add_flag("--json", a.sample.json, "one object a line: text, tokens, logprobs, and finish: end_of_sequence or length");
}

int report(const UserError& error) {
  const Problems shown = in_order(error.problems());  // what is said twice counts once
  const auto errors = std::count_if(shown.begin(), shown.end(),
                                    [](const Problem& problem) { return problem.severity == Severity::kError; });
  std::fprintf(stderr, "%s", error.what());
  if (errors > 1) std::fprintf(stderr, "\n%s; nothing was run\n", plural(errors, "problem").c_str());
  return kWrongPipeline;
}

// A program that was started without them, as some schedulers do, would write its messages into the first files that it opens.
void fill_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) == -1) ::open("/dev/null", O_RDWR);  // gets the lowest number that is free: this one
  }
}

int main(int argc, char** argv) {
  CLI::App app("Sluice: RLHF as a dataflow graph", "rlhf-run");
  app.set_version_flag("--version", std::string("sluice ") + kVersionText);
  app.require_subcommand(1);
  app.footer("rlhf-run pipelines/ppo.toml is short for rlhf-run run pipelines/ppo.toml.");
  Arguments arguments;
  Command chosen;
  add_pipeline_commands(app, arguments, chosen);
  add_run_commands(app, arguments, chosen);
  add_checkpoint_commands(app, arguments.checkpoints, chosen);
  add_simulate_command(app, arguments.simulate, chosen);
  add_node_commands(app, arguments, chosen);
  add_model_commands(app, arguments, chosen);
  try {
    std::vector<std::string> words = with_short_forms(argc, argv, app);
    if (const std::string message = unknown_subcommand(words, app); !message.empty()) {
      std::fputs(message.c_str(), stderr);
      return kWrongUsage;
    }
    std::reverse(words.begin(), words.end());  // CLI11 takes them last first
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kDone : kWrongUsage;
  }
  try {
    return chosen();
  } catch (const engine::OutOfMemory& error) {
    std::fprintf(stderr, "%s", error.what());
    return kFailed;
  } catch (const DamagedCheckpoint& error) {
    std::fprintf(stderr, "%s", error.what());
    return kFailed;
  } catch (const UserError& error) {
    return report(error);
  } catch (const std::exception& error) {
    if (engine::is_out_of_memory(error)) {
      std::fprintf(stderr, "error: out of memory: %s\n", error.what());
      return kFailed;
    }
    std::fprintf(stderr, "internal error: %s\n  This is a bug in sluice; please report it with the command and the pipeline.\n", error.what());
    return kFailed;
  }
}

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  sluice::cli::fill_standard_descriptors();
  sluice::models::TensorPool::install();
  return sluice::cli::main(argc, argv);
}
