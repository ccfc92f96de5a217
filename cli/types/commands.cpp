#include "cli/types/commands.h"

#include <memory>

#include "cli/command/pipeline_options.h"

namespace sluice::cli {
namespace {

void add_nodes(Command& program) {
  Command& nodes = program.add("nodes", "list the node types, objectives, presets and tables",
                               {"rlhf-run nodes", "rlhf-run nodes --format json | jq '.nodes[].type'",
                                "rlhf-run nodes --format markdown > docs/nodes.md"});
  struct Taken {
    std::vector<std::string> plugins;
    std::string format = "text";
  };
  const auto taken = std::make_shared<Taken>();
  take_plugin_files(nodes, taken->plugins);
  nodes.option("--format", taken->format, Values::one_of({"text", "json", "markdown"}),
               "text: a line each; json and markdown: all about them (default: text)");
  nodes.runs([taken] { return list_nodes(taken->plugins, taken->format); });
}

void add_pipelines(Command& program) {
  program
      .add("pipelines", "list the pipelines that come with the program, which extends = \"builtin:NAME\" names",
           {"rlhf-run pipelines", "rlhf-run plan builtin:grpo", "rlhf-run run builtin:grpo --set pipeline.iterations=10"})
      .runs(list_pipelines);
}

void add_problems(Command& program) {
  Command& problems =
      program.add("problems", "list the kinds of problems that validate can report", {"rlhf-run problems | grep budget"});
  const auto format = std::make_shared<std::string>("text");
  problems.option("--format", *format, Values::one_of({"text", "markdown"}),
                  "markdown: the table of docs/pipeline-language.md (default: text)");
  problems.runs([format] { return list_problem_kinds(*format); });
}

void add_describe(Command& program) {
  Command& describe = program.add("describe", "all about one node type, objective, preset or table of a pipeline",
                                  {"rlhf-run describe gae", "rlhf-run describe objective:ppo_clip",
                                   "rlhf-run describe preset:verl", "rlhf-run describe optimizer"});
  struct Taken {
    std::string type;
    std::vector<std::string> plugins;
  };
  const auto taken = std::make_shared<Taken>();
  describe
      .argument("type", taken->type, Values::described_type(),
                "such as gae, objective:ppo_clip, preset:verl, budget or optimizer")
      .required();
  take_plugin_files(describe, taken->plugins);
  describe.runs([taken] { return describe_type(taken->type, taken->plugins); });
}

}  // namespace

void add_type_commands(Command& program) {
  add_nodes(program);
  add_pipelines(program);
  add_problems(program);
  add_describe(program);
}

void add_completion_command(Command& program) {
  Command& completion =
      program.add("completion", "print a script that makes a shell complete subcommands, options and their values",
                  {"source <(rlhf-run completion bash)         # in ~/.bashrc",
                   "source <(rlhf-run completion zsh)          # in ~/.zshrc, after compinit",
                   "rlhf-run completion fish | source          # in ~/.config/fish/config.fish"});
  const auto shell = std::make_shared<std::string>();
  completion.argument("shell", *shell, Values::one_of({"bash", "zsh", "fish"}), "which one").required();
  completion.runs([shell, &program] { return print_completion(program, *shell); });
}

}  // namespace sluice::cli
