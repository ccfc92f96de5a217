#include "engine/contract/spec/pipeline_builder.h"

#include "base/error.h"

namespace sluice::engine {
namespace {

void put(Table& table, const std::string& key, PipelineBuilder::Data data) {
  table.entries.push_back({.key = key, .key_where = {}, .value = {.data = std::move(data), .where = {}, .base = {}}});
}

Table table_of(const PipelineBuilder::Params& params) {
  Table table;
  for (const auto& [key, data] : params) put(table, key, data);
  return table;
}

}  // namespace

PipelineBuilder::PipelineBuilder(std::string name, int64_t iterations) {
  set("pipeline", "name", std::move(name));
  set("pipeline", "iterations", iterations);
}

PipelineBuilder& PipelineBuilder::budget(int64_t tokens_in_flight, int64_t micro_batch_tokens) {
  put(spec_.budget, "tokens_in_flight", tokens_in_flight);
  put(spec_.budget, "micro_batch_tokens", micro_batch_tokens);
  return *this;
}

PipelineBuilder& PipelineBuilder::set(const std::string& table, const std::string& key, Data value) {
  const std::pair<const char*, Table*> tables[] = {
      {"pipeline", &spec_.pipeline},     {"budget", &spec_.budget}, {"schedule", &spec_.schedule}, {"runtime", &spec_.runtime},
      {"checkpoint", &spec_.checkpoint}, {"log", &spec_.log},       {"cluster", &spec_.cluster}};
  for (const auto& [name, place] : tables) {
    if (table != name) continue;
    put(*place, key, std::move(value));
    return *this;
  }
  throw InternalError("a pipeline has no table [" + table + "]");
}

PipelineBuilder& PipelineBuilder::role(const std::string& name, const Params& params) {
  spec_.roles.push_back({.name = {name, {}}, .params = table_of(params)});
  return *this;
}

PipelineBuilder& PipelineBuilder::model(const std::string& name, const Params& params) {
  spec_.models.push_back({.name = {name, {}}, .params = table_of(params)});
  return *this;
}

PipelineBuilder& PipelineBuilder::node(const std::string& name, const std::string& type, const std::vector<std::string>& inputs,
                                       const Params& params, const std::string& on) {
  NodeSpec node{.name = {name, {}}, .type = {type, {}}, .inputs = {}, .on = {on, {}}, .params = table_of(params)};
  for (const std::string& input : inputs) node.inputs.push_back({input, {}});
  spec_.nodes.push_back(std::move(node));
  return *this;
}

}  // namespace sluice::engine
