#include "engine/contract/params/param_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "engine/contract/registry.h"
#include "tests/engine/known_kinds.h"
#include "tests/engine/spec_builder.h"
#include "tests/golden.h"

namespace sluice::engine::testing::param_set_test {
namespace {

using ::testing::ElementsAre;

enum class Finish { kStop, kLength };
constexpr std::array<std::pair<Finish, const char*>, 2> enum_names(Finish) {
  return {{{Finish::kStop, "stop"}, {Finish::kLength, "length"}}};
}

class Objective {
 public:
  static constexpr const char* kComponent = "objective";
  virtual ~Objective() = default;
  virtual double value() const = 0;
};

struct ScaleParams {
  double scale = 2;
};

class Scale final : public Objective {
 public:
  static void describe(Contract<ScaleParams>& c) {
    c.type("scale", "a number");
    c.param("scale", &ScaleParams::scale).above(0).doc("the number");
  }
  explicit Scale(const ScaleParams& params) : params_(params) {}
  double value() const override { return params_.scale; }

 private:
  ScaleParams params_;
};

// Whose code looks at what it is given.
class Picky final : public Objective {
 public:
  static void describe(Contract<ScaleParams>& c) {
    c.type("picky", "a number of its own");
    c.param("scale", &ScaleParams::scale).doc("the number");
  }
  explicit Picky(const ScaleParams& params) {
    if (params.scale != 7) throw UserError("the scale must be 7", "7 it is");
  }
  double value() const override { return 7; }
};

struct Inner {
  double rate = 0.1;
  int64_t warm_up = 0;
};

struct Outer {
  bool flag = false;
  int64_t count = 3;
  double fraction = 0.5;
  double bound = 2;
  std::string text = "a";
  std::filesystem::path file;
  std::vector<std::filesystem::path> files;
  std::vector<double> weights;
  std::vector<std::string> stop;
  Finish finish = Finish::kStop;
  std::optional<int64_t> limit;
  std::optional<Inner> inner;
  Component<Objective> objective{.type = "scale", .object = nullptr, .parts = {}};
};

ParamSet<Outer> outer_params() {
  ParamSet<Inner> inner;
  inner.param("rate", &Inner::rate).above(0).between(0, 1).doc("step size");
  inner.param("warm_up", &Inner::warm_up).required().at_least(0);
  ParamSet<Outer> outer;
  outer.param("flag", &Outer::flag);
  outer.param("count", &Outer::count).at_least(1).doc("how many");
  outer.param("fraction", &Outer::fraction).between(0, 1).doc("0 none, 1 all");
  outer.param("bound", &Outer::bound).between(0, std::numeric_limits<double>::infinity()).above(0);
  outer.param("text", &Outer::text);
  outer.param("file", &Outer::file);
  outer.param("files", &Outer::files).must_exist();
  outer.param("weights", &Outer::weights).above(0);
  outer.param("stop", &Outer::stop);
  outer.param("finish", &Outer::finish).doc("why it ended");
  outer.param("limit", &Outer::limit).at_least(1);
  outer.table("inner", &Outer::inner, inner);
  outer.param("objective", &Outer::objective);
  return outer;
}

class Params : public ::testing::Test {
 protected:
  void SetUp() override { registry_.add_component<Objective, Scale>(); }

  Outer bound(const std::string& keys) {
    PipelineSpec spec = spec_of("[nodes.a]\n" + keys);
    for (Entry& entry : spec.nodes[0].params.entries) set_base(entry.value);
    Outer outer;
    BindContext context{registry_, problems_, "type \"outer\""};
    outer_params().erased().bind(&outer, spec.nodes[0].params, context);
    return outer;
  }

  static void set_base(Value& value) {
    value.base = "folder/of/pipeline";
    if (auto* array = std::get_if<Array>(&value.data)) {
      for (Value& element : *array) set_base(element);
    }
  }

  void expect_refused(const std::string& golden, const std::string& keys) {
    bound(keys);
    expect_known_kinds(problems_);
    expect_golden("engine/params/" + golden + ".txt", render(problems_));
  }

  Registry registry_;
  Problems problems_;
};

// Where inf is the largest number, a bound may be none: and only there.
TEST_F(Params, MayBeWithoutABound) {
  EXPECT_TRUE(std::isinf(bound("bound = inf").bound));
  EXPECT_EQ(bound("bound = 1e300").bound, 1e300);
  EXPECT_EQ(render(problems_), "");
  for (const std::string keys : {"bound = -inf", "bound = nan", "fraction = inf", "weights = [inf]"}) {
    problems_.clear();
    bound(keys);
    EXPECT_THAT(render(problems_), ::testing::HasSubstr("this is not finite")) << keys;
  }
  const auto infos = outer_params().erased().infos();
  EXPECT_EQ(expectation(*std::ranges::find(infos, "bound", &ParamInfo::name)), "a number above 0, or inf");
}

TEST_F(Params, BindsEveryKind) {
  const Outer outer = bound(R"(flag = true
count = 7
fraction = 0.25
text = "b"
file = "../data/x.jsonl"
stop = ["a", "b"]
finish = "length"
limit = 9
inner = { rate = 0.5, warm_up = 2 }
objective = { type = "scale", scale = 4 }
)");
  EXPECT_EQ(render(problems_), "");
  EXPECT_TRUE(outer.flag);
  EXPECT_EQ(outer.count, 7);
  EXPECT_EQ(outer.fraction, 0.25);
  EXPECT_EQ(outer.text, "b");
  EXPECT_EQ(outer.file, "folder/of/data/x.jsonl");
  EXPECT_THAT(outer.stop, ElementsAre("a", "b"));
  EXPECT_EQ(outer.finish, Finish::kLength);
  EXPECT_EQ(outer.limit, 9);
  EXPECT_EQ(outer.inner->rate, 0.5);
  EXPECT_EQ(outer.inner->warm_up, 2);
  EXPECT_EQ(outer.objective.object->value(), 4);
}

TEST_F(Params, KeepsDefaultsAndMakesTheDefaultComponent) {
  const Outer outer = bound("");
  EXPECT_EQ(outer.count, 3);
  EXPECT_FALSE(outer.inner.has_value());
  ASSERT_NE(outer.objective.object, nullptr);
  EXPECT_EQ(outer.objective.object->value(), 2);
}

TEST_F(Params, TakesAnIntegerForAReal) { EXPECT_EQ(bound("fraction = 1").fraction, 1.0); }
TEST_F(Params, TakesAnAbsolutePathAsItIs) { EXPECT_EQ(bound("file = \"/data/x\"").file, "/data/x"); }
TEST_F(Params, TakesOnePathOrMany) {
  EXPECT_THAT(bound("files = \"/etc/passwd\"").files, ElementsAre("/etc/passwd"));
  EXPECT_THAT(bound("files = [\"../*.jsonl\", \"/etc/passwd\"]").files, ElementsAre("folder/of/*.jsonl", "/etc/passwd"));
  EXPECT_EQ(render(problems_), "");
}
TEST_F(Params, ADeviceIsNoFile) {
  bound("files = \"/dev/null\"");
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_[0].message, "files: /dev/null is a pipe, a device or a socket, not a file");
}
TEST_F(Params, EachMissingPathOfAListIsShown) {
  bound("files = [\"a.jsonl\", \"/etc/passwd\", \"b.jsonl\"]");
  ASSERT_EQ(problems_.size(), 2u);
  EXPECT_EQ(problems_[0].message, "files: there is no file folder/of/pipeline/a.jsonl");
  EXPECT_EQ(problems_[1].message, "files: there is no file folder/of/pipeline/b.jsonl");
}
TEST_F(Params, TakesAListOfNumbersInTheirRange) {
  EXPECT_THAT(bound("weights = [3, 0.5]").weights, ElementsAre(3.0, 0.5));
  EXPECT_EQ(render(problems_), "");
  bound("weights = [3, 0]");
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_[0].message, "weights must be an array of numbers above 0");
}
TEST_F(Params, TakesAComponentByItsName) { EXPECT_EQ(bound("objective = \"scale\"").objective.object->value(), 2); }

TEST_F(Params, WritesItsValuesAsTomlThatBindsToTheSame) {
  const Outer outer =
      bound("fraction = 0.1\nstop = [\"x\"]\ninner = { warm_up = 4 }\nobjective = { type = \"scale\", scale = 4 }");
  const std::string text = detail::inline_text(outer_params().erased().texts(&outer));
  EXPECT_EQ(
      text,
      "{ flag = false, count = 3, fraction = 0.1, bound = 2.0, text = \"a\", weights = [], stop = [\"x\"], finish = \"stop\", "
      "inner = { rate = 0.1, warm_up = 4 }, objective = { type = \"scale\", scale = 4.0 } }");
}

TEST_F(Params, SaysWhereARelativePathWasLookedFor) {
  const std::string folder = std::filesystem::absolute("folder/of/pipeline").string();
  bound("files = [\"a.jsonl\", \"/none/b.jsonl\"]");
  EXPECT_EQ(problems_.at(0).help, "a relative path starts at the folder of the file that it is written in, " + folder);
  EXPECT_EQ(problems_.at(1).help, "");
}

TEST_F(Params, SuggestsTheKeyThatWasMeant) { expect_refused("misspelt", "cuont = 4"); }
TEST_F(Params, ListsTheKeysWhenNoneIsNear) { expect_refused("unknown", "temperature = 4"); }
TEST_F(Params, RefusesARealForAnInteger) { expect_refused("real_for_integer", "count = 3.0\nlimit = 2.5"); }
TEST_F(Params, RefusesNumbersOutOfRange) {
  expect_refused("range", "count = 0\nfraction = 1.5\ninner = { rate = 0, warm_up = -1 }");
}
TEST_F(Params, RefusesWhatIsNotFinite) { expect_refused("not_finite", "fraction = nan"); }

TEST_F(Params, RefusesOtherKindsOfValues) {
  expect_refused(
      "kinds",
      "flag = 1\ncount = \"3\"\nfraction = true\ntext = 4\nfile = []\nstop = \"a\"\nfinish = 1\ninner = 3\nobjective = 1");
}

TEST_F(Params, PointsAtTheElementThatIsWrong) { expect_refused("element", "stop = [\"a\", 2]"); }
TEST_F(Params, RefusesAnEmptyPath) { expect_refused("empty_path", "file = \"\""); }
TEST_F(Params, SuggestsTheChoiceThatWasMeant) { expect_refused("choice_misspelt", "finish = \"lenght\""); }
TEST_F(Params, ListsTheChoices) { expect_refused("choice_unknown", "finish = \"never\""); }
TEST_F(Params, OfAListOfNamesEachMustBeOneOfThem) {
  ParamSet<Outer> set;
  set.param("stop", &Outer::stop).each_of({"red", "green"});
  PipelineSpec spec = spec_of("[nodes.a]\nstop = [\"red\", \"gren\"]");
  Outer outer;
  BindContext context{registry_, problems_, "type \"outer\""};
  set.erased().bind(&outer, spec.nodes[0].params, context);
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_[0].message, "stop must be one of \"red\", \"green\"");
  EXPECT_EQ(problems_[0].caret, "did you mean \"green\"?");
  EXPECT_THAT(outer.stop, ElementsAre());
}
TEST_F(Params, RefusesAnUnknownComponent) { expect_refused("component_unknown", "objective = { type = \"scales\" }"); }

// Its type "scale" would be a promise that there is an object.
TEST_F(Params, LeavesAComponentWithoutTypeWhoseKeyIsMisspelt) {
  const Outer outer = bound("objektive = \"scale\"");
  EXPECT_EQ(problems_.size(), 1u) << render(problems_);
  EXPECT_EQ(outer.objective.type, "");
}

TEST_F(Params, RefusesAComponentWithoutType) { expect_refused("component_untyped", "objective = { scale = 1 }"); }
TEST_F(Params, RefusesParametersOfAComponent) {
  expect_refused("component_params", "objective = { type = \"scale\", scale = -1, shift = 2 }");
}
TEST_F(Params, WhatAComponentThrowsHasItsPlace) {
  registry_.add_component<Objective, Picky>();
  const Outer outer = bound("count = 0\nobjective = { type = \"picky\", scale = 3 }");
  EXPECT_EQ(outer.objective.object, nullptr);
  ASSERT_EQ(problems_.size(), 2u) << "the others are told too";
  EXPECT_EQ(problems_[1].message, "the scale must be 7");
  EXPECT_EQ(problems_[1].where.line, 3);
  expect_known_kinds(problems_);
}

TEST_F(Params, NamesWhatATableNeeds) { expect_refused("required", "inner = { rat = 0.5 }"); }

TEST_F(Params, NamesTheOwnerWhereThereIsNoPlaceToPointAt) {
  Table table;
  table.entries.push_back({"count", {}, {std::string("3"), {}, {}}});
  Outer outer;
  BindContext context{registry_, problems_, "type \"outer\" of node 'a'"};
  outer_params().erased().bind(&outer, table, context);
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_EQ(problems_[0].message, "count must be an integer from 1 (type \"outer\" of node 'a')");
}

}  // namespace
}  // namespace sluice::engine::testing::param_set_test
