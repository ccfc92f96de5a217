// to_toml writes what parse_pipeline reads.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "base/numbers/random.h"
#include "dsl/parse.h"
#include "tests/dsl/working_folder.h"
#include "tests/dsl/write.h"
#include "tests/golden.h"

namespace sluice::dsl::write_test {
namespace {

using engine::Array;
using engine::Name;
using engine::Table;
using engine::Value;

bool same(const Table& a, const Table& b);

bool same(const Value& a, const Value& b) {
  if (a.data.index() != b.data.index()) return false;
  if (const auto* table = std::get_if<Table>(&a.data)) return same(*table, std::get<Table>(b.data));
  if (const auto* real = std::get_if<double>(&a.data)) {
    const double other = std::get<double>(b.data);
    return std::isnan(*real) ? std::isnan(other) : std::bit_cast<uint64_t>(*real) == std::bit_cast<uint64_t>(other);
  }
  if (const auto* array = std::get_if<Array>(&a.data)) {
    const Array& other = std::get<Array>(b.data);
    return std::equal(array->begin(), array->end(), other.begin(), other.end(),
                      [](const Value& x, const Value& y) { return same(x, y); });
  }
  if (const auto* text = std::get_if<std::string>(&a.data)) return *text == std::get<std::string>(b.data);
  if (const auto* integer = std::get_if<int64_t>(&a.data)) return *integer == std::get<int64_t>(b.data);
  return std::get<bool>(a.data) == std::get<bool>(b.data);
}

bool same(const Table& a, const Table& b) {
  return std::equal(a.entries.begin(), a.entries.end(), b.entries.begin(), b.entries.end(),
                    [](const auto& x, const auto& y) { return x.key == y.key && same(x.value, y.value); });
}

bool same(const std::vector<Name>& a, const std::vector<Name>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Name& x, const Name& y) { return x.text == y.text; });
}

bool same(const engine::PipelineSpec& a, const engine::PipelineSpec& b) {
  const auto same_model = [](const engine::ModelSpec& x, const engine::ModelSpec& y) {
    return x.name.text == y.name.text && same(x.params, y.params);
  };
  const auto same_node = [](const engine::NodeSpec& x, const engine::NodeSpec& y) {
    return x.name.text == y.name.text && x.type.text == y.type.text && x.on.text == y.on.text && same(x.inputs, y.inputs) &&
           same(x.params, y.params);
  };
  return same(a.pipeline, b.pipeline) && same(a.budget, b.budget) && same(a.schedule, b.schedule) && same(a.runtime, b.runtime) &&
         same(a.checkpoint, b.checkpoint) && same(a.cluster, b.cluster) && same(a.plugins, b.plugins) &&
         std::equal(a.models.begin(), a.models.end(), b.models.begin(), b.models.end(), same_model) &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), same_node);
}

/// Specs with every kind of value and with keys that need quotes.
class RandomSpec {
 public:
  explicit RandomSpec(uint64_t seed) : random_(seed, 0) {}

  engine::PipelineSpec spec() {
    engine::PipelineSpec spec;
    for (Table* settings :
         {&spec.pipeline, &spec.budget, &spec.schedule, &spec.runtime, &spec.checkpoint, &spec.log, &spec.cluster})
      *settings = table(3);
    for (uint64_t i = random_.below(3); i > 0; --i) spec.plugins.push_back({"lib" + std::to_string(i) + text(), {}});
    for (uint64_t i = random_.below(3); i > 0; --i) spec.models.push_back({{"m" + std::to_string(i), {}}, table(3)});
    for (uint64_t i = random_.below(4); i > 0; --i) spec.nodes.push_back(node("n-" + std::to_string(i)));
    return spec;
  }

 private:
  engine::NodeSpec node(const std::string& name) {
    engine::NodeSpec node{.name = {name, {}}, .type = {"t" + text(), {}}, .inputs = {}, .on = {}, .params = table(3)};
    for (uint64_t i = random_.below(3); i > 0; --i) node.inputs.push_back({"in" + std::to_string(i), {}});
    if (random_.below(2) == 0) node.on = {"cuda:0", {}};
    return node;
  }

  std::string text() {
    static const std::vector<std::string> kPieces = {"a",  "B",  "7",  "_",    "-",    ".",    " ", "\"", "'",
                                                     "\\", "\n", "\t", "\r",   "\x01", "\x7f", "=", "#",  "[",
                                                     "]",  "ü",  "数", "🙂", "\b",   "{",    "}", ","};
    std::string text;
    for (uint64_t i = random_.below(6); i > 0; --i) text += kPieces[random_.below(kPieces.size())];
    return text;
  }

  double real() {
    const double specials[] = {0.0,
                               -0.0,
                               1.0,
                               0.1,
                               1e300,
                               5e-324,
                               -2.5,
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN(),
                               1e22,
                               123456789.0};
    return random_.below(2) == 0 ? specials[random_.below(std::size(specials))] : random_.normal() * 1e5;
  }

  int64_t integer() {
    const int64_t specials[] = {0, -1, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min() + 1};
    return random_.below(2) == 0 ? specials[random_.below(std::size(specials))] : static_cast<int64_t>(random_.below(100000));
  }

  Value value(int depth) {
    switch (random_.below(depth > 0 ? 6 : 4)) {
      case 0:
        return {random_.below(2) == 0, {}, ""};
      case 1:
        return {integer(), {}, ""};
      case 2:
        return {real(), {}, ""};
      case 3:
        return {text(), {}, ""};
      case 4:
        return {table(depth - 1), {}, ""};
      default: {
        Array array;
        for (uint64_t i = random_.below(4); i > 0; --i) array.push_back(value(depth - 1));
        return {std::move(array), {}, ""};
      }
    }
  }

  Table table(int depth) {
    Table table;
    for (uint64_t i = random_.below(4); i > 0; --i) {
      std::string key = random_.below(2) == 0 ? "key" + std::to_string(i) : text();
      if (table.find(key) == nullptr) table.entries.push_back({std::move(key), {}, value(depth)});
    }
    return table;
  }

  RandomStream random_;
};

TEST(Write, WhatIsWrittenReadsBackAsTheSamePipeline) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const engine::PipelineSpec spec = RandomSpec(seed).spec();
    const std::string text = to_toml(spec);
    const LoadResult result = parse_pipeline(text, "x.toml", "", {});
    ASSERT_EQ(render(result.problems), "") << "seed " << seed << "\n" << text;
    ASSERT_TRUE(same(spec, result.spec)) << "seed " << seed << "\n" << text;
    ASSERT_EQ(to_toml(result.spec), text) << "seed " << seed;
  }
}

TEST(Write, AnExtendedAndOverriddenPipelineBecomesOneReadableFile) {
  const WorkingFolder folder(golden_folder());
  const LoadResult result = load_pipeline("ppo.toml", {"nodes.generate.max_new_tokens=64", "nodes.values=false",
                                                       "models.critic=false", "budget.\"odd key\"={a=[1,inf]}"});
  ASSERT_EQ(render(result.problems), "");
  expect_golden("dsl/effective.expected", to_toml(result.spec));
}

}  // namespace
}  // namespace sluice::dsl::write_test
