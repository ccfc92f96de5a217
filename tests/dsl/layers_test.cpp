// extends and --set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "dsl/parse.h"
#include "tests/dsl/working_folder.h"
#include "tests/golden.h"

namespace sluice::dsl::layers_test {
namespace {

using engine::toml_text;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> node_names(const engine::PipelineSpec& spec) {
  std::vector<std::string> names;
  for (const engine::NodeSpec& node : spec.nodes) names.push_back(node.name.text);
  return names;
}

const engine::NodeSpec& node(const engine::PipelineSpec& spec, const std::string& name) {
  for (const engine::NodeSpec& node : spec.nodes) {
    if (node.name.text == name) return node;
  }
  throw std::out_of_range("no node " + name);
}

/// Files in a folder of their own, which is the current one.
class Extends : public testing::Test {
 protected:
  Extends() : folder_(make_folder()), working_(folder_) {}
  ~Extends() override { std::filesystem::remove_all(folder_); }

  static void write(const std::string& name, const std::string& text) {
    const std::filesystem::path file(name);
    if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  static engine::PipelineSpec load(const std::string& name, const std::vector<std::string>& overrides = {}) {
    LoadResult result = load_pipeline(name, overrides);
    EXPECT_EQ(render(result.problems), "");
    return std::move(result.spec);
  }

 private:
  static std::filesystem::path make_folder() {
    std::string pattern = testing::TempDir() + "sluice_extends_XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    return pattern;
  }

  std::filesystem::path folder_;
  WorkingFolder working_;
};

constexpr const char* kBase = R"(
[pipeline]
name = "base"
seed = 1
[models.m]
optimizer = { type = "adamw", learning_rate = 1e-3 }
checkpoint = "weights"
[nodes.a]
type = "source"
path = "a.jsonl"
[nodes.b]
type = "scorer"
inputs = ["a"]
[nodes.c]
type = "train"
inputs = ["b", "a"]
)";

TEST_F(Extends, TablesMergeKeyByKeyAndTheRestReplaces) {
  write("base.toml", kBase);
  write(
      "top.toml",
      "extends = \"base.toml\"\n[pipeline]\nseed = 2\n[models.m]\noptimizer.learning_rate = 5e-5\n[nodes.c]\ninputs = [\"b\"]\n");
  const engine::PipelineSpec spec = load("top.toml");
  EXPECT_EQ(toml_text({spec.pipeline, {}, ""}), R"({ name = "base", seed = 2 })");
  EXPECT_EQ(toml_text(spec.models.at(0).params.find("optimizer")->value), R"({ type = "adamw", learning_rate = 5e-05 })");
  ASSERT_EQ(node(spec, "c").inputs.size(), 1u);
  EXPECT_EQ(node(spec, "c").type.text, "train");
}

TEST_F(Extends, NodesKeepTheOrderOfTheBaseAndNewOnesFollow) {
  write("base.toml", kBase);
  write("top.toml", "extends = \"base.toml\"\n[nodes.new]\ntype = \"x\"\n[nodes.c]\nk = 1\n[nodes.a]\nk = 1\n");
  EXPECT_THAT(node_names(load("top.toml")), ElementsAre("a", "b", "c", "new"));
}

TEST_F(Extends, FalseRemovesAnInheritedNodeOrModel) {
  write("base.toml", kBase);
  write("top.toml", "extends = \"base.toml\"\n[nodes]\nb = false\n[models]\nm = false\n");
  const engine::PipelineSpec spec = load("top.toml");
  EXPECT_THAT(node_names(spec), ElementsAre("a", "c"));
  EXPECT_TRUE(spec.models.empty());
}

TEST_F(Extends, PathsAndPlacesAreThoseOfTheFileTheyWereWrittenIn) {
  write("lib/base.toml", kBase);
  write("runs/mid.toml", "extends = \"../lib/base.toml\"\n[nodes.a]\npath = \"mid.jsonl\"\n");
  write("top.toml", "extends = \"runs/mid.toml\"\nplugins = [\"p.so\"]\n");
  const engine::PipelineSpec spec = load("./top.toml");
  const engine::Entry& path = *node(spec, "a").params.find("path");
  EXPECT_EQ(path.value.base, "runs");
  EXPECT_EQ(path.value.where.source->name, "runs/mid.toml");
  EXPECT_EQ(path.value.where.line, 3);
  const engine::Entry& checkpoint = *spec.models.at(0).params.find("checkpoint");
  EXPECT_EQ(checkpoint.value.base, "lib");
  EXPECT_EQ(checkpoint.value.where.source->name, "lib/base.toml");
  EXPECT_EQ(spec.where.source->name, "./top.toml");
  EXPECT_EQ(spec.plugins_base, ".");
}

TEST_F(Extends, ProblemsOfAllFilesAndOverridesComeInOnePass) {
  write("base.toml", "[buget]\n");
  write("top.toml", "extends = \"base.toml\"\n[shedule]\n");
  const std::string text = render(load_pipeline("top.toml", {"nodes.x.k=1", "nothing", "+budget.k=1"}).problems);
  EXPECT_THAT(text, HasSubstr("base.toml:1:2: error: unknown table [buget]"));
  EXPECT_THAT(text, HasSubstr("top.toml:2:2: error: unknown table [shedule]"));
  EXPECT_THAT(text, HasSubstr("--set:1:7: error: no node is named \"x\""));
  EXPECT_THAT(text, HasSubstr("--set:1:1: error: no = in \"nothing\""));
  EXPECT_THAT(text, HasSubstr("--set:1:1: error: a key does not begin with +\n    1 | +budget.k=1\n"));
}

TEST_F(Extends, ABaseThatCannotBeReadIsTheOnlyProblem) {
  write("base.toml", "[nodes.a\n");
  write("top.toml", "extends = \"base.toml\"\n[nodes.a]\nk = 1\n");
  EXPECT_EQ(load_pipeline("top.toml", {"nodes.a.k=2"}).problems.size(), 1u);
}

TEST_F(Extends, TheSameFileMayBeReachedTwiceButNotFromItself) {
  write("base.toml", "extends = \"base.toml\"\n");
  EXPECT_THAT(render(load_pipeline("base.toml", {}).problems), HasSubstr("= base.toml extends base.toml\n"));
}

class Set : public testing::Test {
 protected:
  static LoadResult apply(const std::vector<std::string>& overrides) {
    return parse_pipeline(kBase, "base.toml", "folder", overrides);
  }

  static engine::PipelineSpec applied(const std::vector<std::string>& overrides) {
    LoadResult result = apply(overrides);
    EXPECT_EQ(render(result.problems), "");
    return std::move(result.spec);
  }

  static std::string value_of(const std::string& argument) {
    return toml_text(applied({"pipeline.x=" + argument}).pipeline.find("x")->value);
  }
};

TEST_F(Set, ReadsTheValueAsToml) {
  EXPECT_EQ(value_of("64"), "64");
  EXPECT_EQ(value_of("2.5e-1"), "0.25");
  EXPECT_EQ(value_of("true"), "true");
  EXPECT_EQ(value_of("\"64\""), "\"64\"");
  EXPECT_EQ(value_of(" [1, 2] "), "[1, 2]");
  EXPECT_EQ(value_of("{ a = 1, b.c = 'x' }"), "{ a = 1, b = { c = \"x\" } }");
}

TEST_F(Set, TakesWhatIsNotTomlAsText) {
  EXPECT_EQ(value_of("gae"), "\"gae\"");
  EXPECT_EQ(value_of("../models/tiny v2"), "\"../models/tiny v2\"");
  EXPECT_EQ(value_of("a=b"), "\"a=b\"");
  EXPECT_EQ(value_of("cuda:0"), "\"cuda:0\"");
  EXPECT_EQ(value_of("\"\""), "\"\"");
  EXPECT_EQ(value_of("3 apples"), "\"3 apples\"");
}

TEST_F(Set, ALineBreakInAValueCannotSetASecondKey) { EXPECT_EQ(value_of("1\npipeline.y=2"), "\"1\\npipeline.y=2\""); }

TEST_F(Set, ChangesOneKeyOfANode) {
  const engine::PipelineSpec spec = applied({"nodes.a.path=b.jsonl", "nodes.c.inputs=[\"a\"]", "nodes.b.type=other"});
  EXPECT_EQ(toml_text(node(spec, "a").params.find("path")->value), "\"b.jsonl\"");
  EXPECT_EQ(node(spec, "c").inputs.at(0).text, "a");
  EXPECT_EQ(node(spec, "b").type.text, "other");
}

TEST_F(Set, TheLastOneWins) {
  EXPECT_EQ(toml_text(applied({"pipeline.seed=5", "pipeline.seed=6"}).pipeline.find("seed")->value), "6");
}

TEST_F(Set, CanRemoveANode) { EXPECT_THAT(node_names(applied({"nodes.b=false"})), ElementsAre("a", "c")); }

TEST_F(Set, CanRemoveAKey) {
  const engine::PipelineSpec spec = applied({"nodes.a.path=", "pipeline.x.y=1", "pipeline.x.z=2", "pipeline.x.y= "});
  EXPECT_EQ(node(spec, "a").params.find("path"), nullptr);
  EXPECT_EQ(toml_text(spec.pipeline.find("x")->value), "{ z = 2 }");
  EXPECT_EQ(toml_text(applied({"pipeline.seed=", "pipeline.seed=6"}).pipeline.find("seed")->value), "6");
}

TEST_F(Set, PathsStartAtTheCurrentFolder) {
  const engine::PipelineSpec spec = applied({"nodes.a.path=b.jsonl"});
  EXPECT_EQ(node(spec, "a").params.find("path")->value.base, "");
}

TEST_F(Set, SpansPointIntoTheArgument) {
  const engine::PipelineSpec spec = applied({"nodes.a.path = größe.jsonl "});
  const engine::Entry& path = *node(spec, "a").params.find("path");
  EXPECT_EQ(path.value.where.source->name, "--set");
  EXPECT_EQ(path.value.where.column, 16);
  EXPECT_EQ(path.value.where.length, 11);
  EXPECT_EQ(path.key_where.column, 9);
  EXPECT_EQ(path.key_where.length, 4);
}

TEST_F(Set, QuotedKeysMayHoldAnEqualsSign) {
  EXPECT_EQ(toml_text(applied({"pipeline.\"a=b\"=3"}).pipeline.find("a=b")->value), "3");
}

TEST_F(Set, MistakesAreReportedAsInTheGoldenFile) {
  std::string text;
  for (const std::string argument : {"nodes.a.path",
                                     "=3",
                                     "nodes.aa.path=x",
                                     "models.actor.head=value",
                                     "buget.tokens_in_flight=1",
                                     "seed=3",
                                     "nodes..a=1",
                                     "nodes.b=3",
                                     "nodes.b.inputs=a",
                                     "nodes.b.inputs=[a]",
                                     "nodes.new.type=gae",
                                     "extends=x.toml",
                                     "nodes=1",
                                     "[nodes.a]#=1",
                                     "pipeline.day=1979-05-27",
                                     "pipeline.seed=18446744073709551615",
                                     "pipeline.rate=1e400",
                                     "nodes.none=false",
                                     "nodes.none.path=",
                                     "pipeline.none="}) {
    text += "$ --set " + argument + "\n" + render(apply({argument}).problems) + "\n";
  }
  expect_golden("dsl/overrides.expected", text);
}

}  // namespace
}  // namespace sluice::dsl::layers_test
