#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/registry.h"
#include "nodes/models/language_model_type.h"

namespace sluice::nodes::testing {

/// A key of a table, at no place of a file.
template <class T>
engine::Entry entry(std::string key, T value) {
  engine::Entry result{.key = std::move(key)};
  result.value.data = std::move(value);
  return result;
}

inline engine::Entry table_entry(std::string key, std::vector<engine::Entry> entries) {
  engine::Table table;
  table.entries = std::move(entries);
  return entry(std::move(key), std::move(table));
}

inline engine::Entry strings_entry(std::string key, const std::vector<std::string>& strings) {
  engine::Array array;
  for (const std::string& text : strings) array.emplace_back().data = text;
  return entry(std::move(key), std::move(array));
}

inline engine::Entry optimizer_entry(std::optional<double> learning_rate) {
  std::vector<engine::Entry> entries;
  if (learning_rate) entries.push_back(entry("learning_rate", *learning_rate));
  return table_entry("optimizer", std::move(entries));
}

inline engine::Entry head_entry(const std::string& head) { return entry("head", head); }
inline engine::Entry dtype_entry(const std::string& dtype) { return entry("dtype", dtype); }

/// `[models.actor]` with what the test writes.
inline engine::ModelSpec spec_of(std::vector<engine::Entry> entries) {
  const auto source = std::make_shared<SourceText>(SourceText{"test.toml", "[models.actor]\ncheckpoint = ...\n"});
  engine::ModelSpec spec;
  spec.name = {"actor", {source, 1, 1, 14}};
  spec.params.where = spec.name.where;
  spec.params.entries = std::move(entries);
  return spec;
}

/// The same with a checkpoint.
inline engine::ModelSpec model_spec(const std::filesystem::path& checkpoint, std::vector<engine::Entry> more = {}) {
  more.insert(more.begin(), entry("checkpoint", checkpoint.string()));
  engine::ModelSpec spec = spec_of(std::move(more));
  spec.params.entries.front().value.where = {spec.name.where.source, 2, 14, 3};
  return spec;
}

/// What the checks make of a model.
struct Bound {
  engine::Registry registry;
  Problems problems;
  engine::ModelFacts facts;
  std::shared_ptr<const void> params;

  explicit Bound(const engine::ModelSpec& spec) {
    engine::BindContext context{registry, problems, "[models.actor]"};
    params = LanguageModelType().bind(spec, context, facts);
  }
};

}  // namespace sluice::nodes::testing
