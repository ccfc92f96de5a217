#include "cli/run_folder/recorded_pipeline.h"

#include <algorithm>
#include <memory>

#include "base/text/strings.h"
#include "dsl/toml_source.h"
#include "engine/contract/params/schedule_params.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kNodeTable = "nodes.";

// Texts, numbers and their lists are written alike in TOML and JSON.
Json json_of_toml(const std::string& text) {
  if (text.empty()) return nullptr;
  Json value = Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(text) : value;
}

std::string without_home(std::string text, const std::string& home) {
  if (home.size() < 2 || home.front() != '/') return text;
  const std::string inside = "\"" + home + (home.back() == '/' ? "" : "/");
  for (size_t at = text.find(inside); at != std::string::npos; at = text.find(inside, at))
    text.replace(at, inside.size(), "\"~/");
  return text;
}

}  // namespace

std::string RecordedPipeline::toml_of(const std::string& table, const std::string& key) const {
  const auto found = std::ranges::find_if(keys_, [&](const auto& one) { return one.table == table && one.key == key; });
  return found == keys_.end() ? std::string() : found->text;
}

Json RecordedPipeline::value(const std::string& table, const std::string& key) const { return json_of_toml(toml_of(table, key)); }

std::string RecordedPipeline::text(const std::string& table, const std::string& key) const {
  const Json found = value(table, key);
  return found.is_string() ? found.get<std::string>() : std::string();
}

double RecordedPipeline::number(const std::string& table, const std::string& key, double otherwise) const {
  const Json found = value(table, key);
  return found.is_number() ? found.get<double>() : otherwise;
}

double RecordedPipeline::last_number(const std::string& table, const std::string& key, double otherwise,
                                     const engine::Registry& registry) const {
  const std::string text = key + " = " + toml_of(table, key);
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{.name = table, .text = text});
  const auto read = dsl::parse_toml(text, source, {}, problems);
  const engine::Entry* const written = read ? read->find(key) : nullptr;
  if (written == nullptr) return otherwise;
  const auto iterations = static_cast<int64_t>(number("pipeline", "iterations", 0));
  const auto found = engine::scheduled_number(written->value, iterations, registry);
  return found ? found->at(std::max<int64_t>(0, manifest_.iterations - 1)) : otherwise;
}

std::string RecordedPipeline::described_by(const std::string& model) const {
  const std::string averaged = text("models." + model, "ema.of");
  return averaged.empty() ? model : averaged;
}

std::vector<RecordedPipeline::Node> RecordedPipeline::nodes() const {
  std::vector<Node> nodes;
  for (const engine::EffectiveKey& key : keys_) {
    if (key.key == "type" && key.table.starts_with(kNodeTable))
      nodes.push_back({.name = key.table.substr(kNodeTable.size()), .type = text(key.table, key.key)});
  }
  return nodes;
}

bool RecordedPipeline::mentions(const Node& node, const std::string& text) const {
  return std::ranges::any_of(keys_, [&](const engine::EffectiveKey& key) {
    return key.table == node.table() && key.key != "type" && json_of_toml(key.text) == Json(text);
  });
}

std::string RecordedPipeline::toml(const std::string& home) const {
  std::string toml, table;
  for (const engine::EffectiveKey& key : keys_) {
    if (key.text.empty()) continue;
    if (key.table != table) toml += (toml.empty() ? "[" : "\n[") + key.table + "]\n";
    table = key.table;
    toml += key.key + " = " + without_home(key.text, home) + "\n";
  }
  return toml;
}

}  // namespace sluice::cli
