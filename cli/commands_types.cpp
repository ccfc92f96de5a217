#include <memory>

#include "cli/command_families.h"
#include "cli/commands.h"

namespace sluice::cli {
namespace {

void take_plugin_files(Command& command, std::vector<std::string>& into) {
  command.list("--plugin", into, Values::file(), "also load this plugin (may be repeated)");
}

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

void add_schema(Command& program) {
  Command& schema = program.add(
      "schema", "the JSON Schema of pipeline files, for editors and taplo",
      {"rlhf-run schema -o pipeline.schema.json", "rlhf-run schema --plugin build/libmy_nodes.so -o pipeline.schema.json"});
  struct Taken {
    std::vector<std::string> plugins;
    std::filesystem::path output;
  };
  const auto taken = std::make_shared<Taken>();
  take_plugin_files(schema, taken->plugins);
  schema.option("-o,--output", taken->output, Values::file(), "the file that it is written to (default: standard output)");
  schema.runs([taken] { return print_schema(taken->plugins, taken->output); });
}

void add_try(Command& program) {
  Command& attempt = program.add(
      "try", "run one node or objective on columns given as JSON on standard input",
      {"echo '{\"columns\": {\"token_rewards\": [[1, 2, 3]], \"values\": [[0.5, 1, 1.5]]}}' | rlhf-run try gae --set lambda=1.0",
       "rlhf-run try objective:ppo_clip < columns.json"});
  struct Taken {
    std::string type;
    std::vector<std::string> sets;
    std::string preset;
    std::vector<std::string> plugins;
  };
  const auto taken = std::make_shared<Taken>();
  attempt.argument("type", taken->type, Values::tried_type(), "such as gae or objective:ppo_clip").required();
  attempt.list("--set", taken->sets, Values::any("KEY=VALUE"), "a parameter: --set lambda=0.95 (may be repeated)");
  take_plugin_files(attempt, taken->plugins);
  attempt.option("--preset", taken->preset, Values::any(),
                 "values for parameters that are not set, as [pipeline] preset gives them");
  attempt.runs([taken] { return try_one(taken->type, taken->sets, taken->preset, taken->plugins); });
}

}  // namespace

void add_type_commands(Command& program) {
  add_nodes(program);
  add_pipelines(program);
  add_problems(program);
  add_describe(program);
  add_schema(program);
  add_try(program);
}

}  // namespace sluice::cli
