#include "nodes/rollout/environments/tool_source.h"

namespace sluice::nodes {

Json tool_schemas(const std::vector<Tool>& tools) {
  Json schemas = Json::array();
  for (const Tool& tool : tools) {
    const Json function = {{"name", tool.name}, {"description", tool.description}, {"parameters", tool.parameters}};
    schemas.push_back({{"type", "function"}, {"function", function}});
  }
  return schemas;
}

}  // namespace sluice::nodes
