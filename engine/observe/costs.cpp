#include "engine/observe/costs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "base/text/strings.h"

namespace sluice::engine {
namespace {

constexpr int kVersion = 1;
constexpr int64_t kLongest = int64_t{1} << 32;  // of a length, and of what is counted

struct CostKey {
  const char* name;
  double NodeCosts::*value;
};

constexpr std::array<CostKey, 11> kCostKeys{{{"per_batch_us", &NodeCosts::per_batch_us},
                                             {"per_token_us", &NodeCosts::per_token_us},
                                             {"per_iteration_us", &NodeCosts::per_iteration_us},
                                             {"per_checkpoint_us", &NodeCosts::per_checkpoint_us},
                                             {"per_step_us", &NodeCosts::per_step_us},
                                             {"per_sampled_token_us", &NodeCosts::per_sampled_token_us},
                                             {"per_prompt_token_us", &NodeCosts::per_prompt_token_us},
                                             {"drafted_per_step", &NodeCosts::drafted_per_step},
                                             {"kept_per_step", &NodeCosts::kept_per_step},
                                             {"per_group_us", &NodeCosts::per_group_us},
                                             {"kept_share", &NodeCosts::kept_share}}};

Json json_of(const NodeCosts& costs) {
  Json json{{"threads", costs.threads}};
  for (const CostKey& key : kCostKeys) {
    const double value = costs.*key.value;
    if (value != NodeCosts().*key.value) json[key.name] = value;
  }
  return json;
}

Json json_of(const LengthHistogram& lengths) {
  Json json = Json::array();
  for (const auto& [length, count] : lengths.counts()) json.push_back({length, count});
  return json;
}

// An object of a costs file, with the path to it for messages. Every key must be taken.
class Reader {
 public:
  Reader(const Json& json, std::string file, std::string path) : json_(json), file_(std::move(file)), path_(std::move(path)) {
    if (!json_.is_object()) fail("", "must be an object");
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    const std::string place = path_.empty() || key.empty() ? path_ + key : path_ + "." + key;
    throw UserError(file_ + ": " + (place.empty() ? "the file" : place) + " " + what,
                    "costs.json is written by a run; simulate --costs RUN reads it");
  }

  const Json* find(const char* key) {
    known_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  double number(const char* key, double missing, double most) {
    const Json* value = find(key);
    if (value == nullptr) return missing;
    if (!value->is_number() || !(value->get<double>() >= 0 && value->get<double>() <= most))
      fail(key, "must be a number from 0 to " + real_text(most));
    return value->get<double>();
  }

  int64_t integer(const char* key, int64_t missing, int64_t least) {
    const Json* value = find(key);
    if (value == nullptr) return missing;
    if (!is_whole(*value, least)) fail(key, "must be an integer from " + std::to_string(least));
    return value->get<int64_t>();
  }

  std::string text(const char* key) {
    const Json* value = find(key);
    if (value != nullptr && !value->is_string()) fail(key, "must be a string");
    return value == nullptr ? std::string() : value->get<std::string>();
  }

  LengthHistogram histogram(const char* key) {
    LengthHistogram lengths;
    const Json* value = find(key);
    if (value == nullptr || !value->is_array()) fail(key, "must be an array of [length, count]");
    for (const Json& entry : *value) {
      if (!entry.is_array() || entry.size() != 2 || !is_whole(entry[0], 0) || !is_whole(entry[1], 1))
        fail(key, "must hold pairs [length, count]");
      lengths.add(entry[0].get<int64_t>(), entry[1].get<int64_t>());
    }
    if (lengths.total() == 0) fail(key, "must not be empty");
    return lengths;
  }

  void end() const {
    const std::vector<std::string> known(known_.begin(), known_.end());
    for (const auto& [key, value] : json_.items()) {
      if (known_.contains(key)) continue;
      const std::string nearest = did_you_mean(key, known);
      fail(key, "is not a key of it" + (nearest.empty() ? std::string() : ", did you mean " + nearest + "?"));
    }
  }

 private:
  static bool is_whole(const Json& value, int64_t least) {
    if (!value.is_number_integer()) return false;
    const bool huge = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(kLongest);
    return !huge && value.get<int64_t>() >= least && value.get<int64_t>() <= kLongest;
  }

  const Json& json_;
  const std::string file_;
  const std::string path_;
  std::set<std::string> known_;
};

constexpr double kLongestWork_us = 1e15;

NodeCosts node_of(const Json& json, const std::string& name, const std::string& node) {
  Reader reader(json, name, "nodes." + node);
  NodeCosts costs;
  costs.threads = static_cast<int>(std::min<int64_t>(reader.integer("threads", 1, 1), 1 << 20));
  for (const CostKey& key : kCostKeys) {
    const bool share = key.value == &NodeCosts::kept_share;
    costs.*key.value = reader.number(key.name, costs.*key.value, share ? 1 : kLongestWork_us);
  }
  reader.end();
  return costs;
}

std::vector<Lengths> lengths_in(const Json& array, const std::string& name) {
  std::vector<Lengths> all;
  for (const Json& json : array) {
    Reader reader(json, name, "lengths[" + std::to_string(all.size()) + "]");
    Lengths lengths{.first_iteration = reader.integer("first_iteration", 0, 0),
                    .prompt = reader.histogram("prompt"),
                    .response = reader.histogram("response")};
    if (!all.empty() && lengths.first_iteration <= all.back().first_iteration) reader.fail("first_iteration", "must ascend");
    reader.end();
    all.push_back(std::move(lengths));
  }
  return all;
}

}  // namespace

const Lengths& Costs::lengths_of(int64_t iteration) const {
  SLUICE_CHECK(!lengths.empty(), "costs without lengths");
  const auto after = std::ranges::upper_bound(lengths, iteration, {}, &Lengths::first_iteration);
  return after == lengths.begin() ? lengths.front() : *std::prev(after);
}

std::string costs_json(const Costs& costs) {
  Json json{{"version", kVersion},    {"pipeline", costs.pipeline}, {"iterations", costs.iterations}, {"seconds", costs.seconds},
            {"gap_us", costs.gap_us}, {"nodes", Json::object()},    {"lengths", Json::array()}};
  for (const auto& [name, node] : costs.nodes) json["nodes"][name] = json_of(node);
  for (const Lengths& lengths : costs.lengths) {
    json["lengths"].push_back({{"first_iteration", lengths.first_iteration},
                               {"prompt", json_of(lengths.prompt)},
                               {"response", json_of(lengths.response)}});
  }
  return json.dump() + "\n";
}

Costs parse_costs(const std::string& text, const std::string& name) {
  const Json json = parse_json(text, name);
  Reader reader(json, name, "");
  if (reader.integer("version", 0, 0) != kVersion) reader.fail("version", "must be " + std::to_string(kVersion));
  Costs costs{.pipeline = reader.text("pipeline"),
              .iterations = reader.integer("iterations", 0, 0),
              .seconds = reader.number("seconds", 0, kLongestWork_us),
              .gap_us = reader.number("gap_us", 0, kLongestWork_us),
              .nodes = {},
              .lengths = {}};
  const Json* const nodes = reader.find("nodes");
  if (nodes == nullptr || !nodes->is_object()) reader.fail("nodes", "must be an object");
  for (const auto& [node, value] : nodes->items()) costs.nodes[node] = node_of(value, name, node);
  const Json* const lengths = reader.find("lengths");
  if (lengths == nullptr || !lengths->is_array() || lengths->empty())
    reader.fail("lengths", "must be an array with an object for each range of iterations");
  costs.lengths = lengths_in(*lengths, name);
  reader.end();
  return costs;
}

NodeCosts mean_of(const std::vector<NodeCosts>& all) {
  if (all.empty()) return {};
  NodeCosts mean{.threads = all.front().threads};
  for (const CostKey& key : kCostKeys) {
    double sum = 0;
    for (const NodeCosts& costs : all) sum += costs.*key.value;
    mean.*key.value = sum / static_cast<double>(all.size());
  }
  return mean;
}

void write_node_costs(ByteWriter& bytes, const NodeCosts& costs) {
  bytes.number(int64_t{costs.threads});
  for (const CostKey& key : kCostKeys) bytes.number(costs.*key.value);
}

NodeCosts read_node_costs(ByteReader& bytes) {
  NodeCosts costs{.threads = static_cast<int>(bytes.whole_number())};
  for (const CostKey& key : kCostKeys) costs.*key.value = bytes.real_number();
  return costs;
}

Costs read_costs(const std::filesystem::path& path) {
  const bool folder = is_folder(path);
  const std::filesystem::path file = folder ? path / "costs.json" : path;
  if (folder && !is_there(file)) {
    throw UserError(path.string() + " has no costs.json",
                    "a run writes it when it ends; name the folder of a run that has ended, such as runs/NAME");
  }
  return parse_costs(read_file(file), file.string());
}

}  // namespace sluice::engine
