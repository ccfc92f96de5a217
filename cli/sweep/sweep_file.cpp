#include "cli/sweep/sweep_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/files/confined_file_system.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "base/text/strings.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

using EffectiveKeys = std::vector<engine::EffectiveKey>;

Json as_tables(const EffectiveKeys& keys) {
  Json tables = Json::object();
  for (const engine::EffectiveKey& key : keys) tables[key.table][key.key] = key.text;
  return tables;
}

// What `keys` have otherwise than `first`.
Json differing(const Json& first, const Json& keys) {
  Json differs = Json::object();
  for (const auto& [table, entries] : keys.items()) {
    for (const auto& [key, text] : entries.items()) {
      if (!first.contains(table) || !first[table].contains(key) || first[table][key] != text) differs[table][key] = text;
    }
  }
  for (const auto& [table, entries] : first.items()) {
    for (const auto& [key, text] : entries.items()) {
      if (!keys.contains(table) || !keys[table].contains(key)) differs[table][key] = nullptr;
    }
  }
  return differs;
}

EffectiveKeys effective_keys_of(const Json& tables) {
  EffectiveKeys keys;
  for (const auto& [table, entries] : tables.items()) {
    for (const auto& [key, text] : entries.items()) {
      if (!text.is_null())
        keys.push_back({.table = table, .key = key, .text = text.get<std::string>(), .origin = {}, .parts = {}});
    }
  }
  return keys;
}

SweepFile sweep_of(const Json& json) {
  SweepFile sweep{.pipeline = json.at("pipeline").get<std::string>(), .grid = {}, .effective = {}};
  sweep.grid.sets = json.at("set").get<std::vector<std::string>>();
  for (const Json& key : json.at("keys"))
    sweep.grid.keys.push_back({key.at("key").get<std::string>(), key.at("values").get<std::vector<std::string>>()});
  sweep.grid.seeds = json.at("seeds").get<std::vector<std::int64_t>>();
  for (const Json& differs : json.at("differs")) {
    Json tables = json.at("effective");
    tables.merge_patch(differs);
    sweep.effective.push_back(effective_keys_of(tables));
  }
  return sweep;
}

// What a file may say that no command line has made.
bool is_sound(const SweepFile& sweep) {
  const auto has_values = [](const SweptKey& key) { return key.values.size() > 1; };
  size_t runs = std::max<size_t>(1, sweep.grid.seeds.size());
  for (const SweptKey& key : sweep.grid.keys) runs = std::min<size_t>(runs * key.values.size(), 1 << 20);
  return std::ranges::all_of(sweep.grid.keys, has_values) && runs == sweep.effective.size();
}

std::string seeds_text(const std::vector<std::int64_t>& seeds) {
  std::vector<std::string> words;
  for (const std::int64_t seed : seeds) words.push_back(std::to_string(seed));
  return words.empty() ? "not set" : join(words, ",");
}

}  // namespace

bool holds_sweep(const fs::path& folder) { return is_there(folder / kSweepFile); }

void write_sweep(const fs::path& folder, const SweepFile& sweep) {
  Json keys = Json::array(), runs = Json::array(), differs = Json::array();
  for (const SweptKey& key : sweep.grid.keys) keys.push_back({{"key", key.key}, {"values", key.values}});
  for (const SweptRun& run : runs_of(sweep.grid)) runs.push_back({{"folder", run.name}, {"set", run.sets}});
  const Json effective = as_tables(sweep.effective.front());
  for (const EffectiveKeys& of_run : sweep.effective) differs.push_back(differing(effective, as_tables(of_run)));
  const Json json = {{"pipeline", sweep.pipeline},   {"set", sweep.grid.sets},  {"keys", std::move(keys)},
                     {"seeds", sweep.grid.seeds},    {"runs", std::move(runs)}, {"effective", effective},
                     {"differs", std::move(differs)}};
  ConfinedFileSystem files({folder});
  write_file_atomically(folder / kSweepFile, json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", files);
}

SweepFile read_sweep(const fs::path& folder) {
  const fs::path file = folder / kSweepFile;
  if (!is_there(file))
    throw UserError(folder.string() + " is not the folder of a sweep: it has no " + kSweepFile,
                    "name the folder that rlhf-run sweep has printed, such as runs/ppo-sweep");
  const Json json = read_json(file);
  try {
    SweepFile sweep = sweep_of(json);
    if (is_sound(sweep)) return sweep;
  } catch (const Json::exception&) {
  }
  throw UserError(file.string() + " is not what rlhf-run sweep has written",
                  "put a copy of it in its place, or begin a new sweep");
}

fs::path folder_of_swept(const fs::path& sweep, const SweptRun& run) {
  const fs::path folder = sweep / run.name;
  if (name_kind(folder) == PathKind::kLink)
    throw UserError(folder.string() + " is a symbolic link, and a run of a sweep lies in its folder",
                    "put what it leads to there");
  return folder;
}

std::vector<std::string> grid_changes(const SweepGrid& before, const SweepGrid& after) {
  const auto shown = [](const std::vector<std::string>& values) { return values.empty() ? "not swept" : join(values, ","); };
  std::vector<std::string> changes;
  for (const SweptKey& key : before.keys) {
    const auto now = std::ranges::find(after.keys, key.key, &SweptKey::key);
    const auto values = now == after.keys.end() ? std::vector<std::string>() : now->values;
    if (values != key.values) changes.push_back(key.key + ": " + shown(key.values) + " -> " + shown(values));
  }
  for (const SweptKey& key : after.keys) {
    if (std::ranges::find(before.keys, key.key, &SweptKey::key) == before.keys.end())
      changes.push_back(key.key + ": " + shown({}) + " -> " + shown(key.values));
  }
  if (before.seeds != after.seeds) changes.push_back("seeds: " + seeds_text(before.seeds) + " -> " + seeds_text(after.seeds));
  if (changes.empty() && before.keys != after.keys)
    changes.emplace_back("the order of the keys, after which the runs are called");
  return changes;
}

}  // namespace sluice::cli
