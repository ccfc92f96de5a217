#include <memory>
#include <string>
#include <variant>

#include "base/error.h"
#include "cli/pipeline/load.h"
#include "cli/plan/commands.h"
#include "cli/process/exit_codes.h"
#include "cli/terminal/output_file.h"
#include "dsl/parse.h"
#include "engine/contract/registry.h"
#include "nodes/rollout/environments/tool_environment.h"

namespace sluice::cli {
namespace {

// What the key `environment` of a node says, if that is tools. Adds problems for what is wrong with it.
std::shared_ptr<const nodes::ToolEnvironment> tools_of(const engine::NodeSpec& node, engine::BindContext& context) {
  const engine::Entry* entry = node.params.find(nodes::Environment::kComponent);
  const auto* table = entry == nullptr ? nullptr : std::get_if<engine::Table>(&entry->value.data);
  const engine::Entry* type = table == nullptr ? nullptr : table->find("type");
  const auto* name = type == nullptr ? nullptr : std::get_if<std::string>(&type->value.data);
  if (name == nullptr || *name != nodes::ToolEnvironment::kType) return nullptr;
  const engine::ParamInfo key{
      .name = nodes::Environment::kComponent, .kind = engine::ParamKind::kComponent, .component = nodes::Environment::kComponent};
  const engine::Component<const void> made = engine::detail::read_component(entry->value, context, key);
  return std::dynamic_pointer_cast<const nodes::ToolEnvironment>(std::static_pointer_cast<const nodes::Environment>(made.object));
}

}  // namespace

// Of the pipeline only environments are bound: the file that is to be written may be one that it names.
int write_tools(const PipelineArguments& arguments, const std::filesystem::path& output) {
  dsl::LoadResult parsed = dsl::load_pipeline(arguments.file, arguments.sets);
  const auto registry = make_registry();
  Json schemas = Json::array();
  bool has_tools = false;
  for (const engine::NodeSpec& node : parsed.spec.nodes) {
    engine::BindContext context{*registry, parsed.problems, "node '" + node.name.text + "'"};
    const auto environment = tools_of(node, context);
    if (environment == nullptr || has_errors(parsed.problems)) continue;
    has_tools = true;
    for (Json& schema : environment->schemas()) schemas.push_back(std::move(schema));
  }
  if (has_errors(parsed.problems)) throw UserError(parsed.problems);
  if (!has_tools)
    throw UserError(arguments.file.string() + " has no node whose environment has tools",
                    "environment = { type = \"tools\", servers = [{ command = [\"python3\", \"server.py\"] }] }");
  const std::string text = schemas.dump(2) + "\n";
  write_output(output, text);
  return kDone;
}

}  // namespace sluice::cli
