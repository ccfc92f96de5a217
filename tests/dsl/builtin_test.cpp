// extends = "builtin:NAME".
#include "dsl/builtin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "dsl/parse.h"
#include "tests/source_folder.h"

namespace sluice::dsl::builtin_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

fs::path source_of(const std::string& name) { return fs::path(tests::source_folder()) / "pipelines" / (name + ".toml"); }

TEST(Builtin, ArePipelinesOfTheSourceTreeInABuildTree) {
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(source_of("grpo").parent_path())) files += entry.path().extension() == ".toml";
  const auto pipelines = builtin_pipelines();
  EXPECT_EQ(pipelines.size(), files);
  for (const BuiltinPipeline& pipeline : pipelines) EXPECT_TRUE(fs::equivalent(pipeline.file, source_of(pipeline.name)));
}

TEST(Builtin, AreExtendedAsTheirFilesAre) {
  const LoadResult by_name = parse_pipeline("extends = \"builtin:gspo\"\n[pipeline]\nseed = 7\n", "p.toml", "/nowhere", {});
  const LoadResult by_path =
      parse_pipeline("extends = \"" + source_of("gspo").string() + "\"\n[pipeline]\nseed = 7\n", "p.toml", "/nowhere", {});
  EXPECT_EQ(render(by_name.problems), "");
  ASSERT_EQ(by_name.spec.nodes.size(), by_path.spec.nodes.size());
  for (size_t i = 0; i < by_name.spec.nodes.size(); ++i)
    EXPECT_EQ(by_name.spec.nodes[i].name.text, by_path.spec.nodes[i].name.text);
}

TEST(Builtin, MayBeLoadedWithoutAFileOverThem) {
  EXPECT_EQ(render(load_pipeline("builtin:grpo", {"pipeline.seed=3"}).problems), "");
}

TEST(Builtin, AnUnknownNameIsAnsweredWithAllThatThereAreTheNearestFirst) {
  const LoadResult result = parse_pipeline("\nextends = \"builtin:sfft\"\n[pipeline]\nname = 3\n", "p.toml", ".", {});
  const std::string text = render(result.problems);
  EXPECT_THAT(text, HasSubstr("p.toml:2:11: error: no pipeline that comes with the program is called \"sfft\""));
  EXPECT_THAT(text, HasSubstr("did you mean \"builtin:sft\"?"));
  EXPECT_THAT(text, HasSubstr("there are: sft, best_of_n, calculator, "));
}

TEST(Builtin, IsWhatWasMeantWhereAFileOfThatNameIsMissing) {
  for (const char* file : {"grpo", "grpo.toml", "nowhere/grpo.toml"})
    EXPECT_THAT(render(load_pipeline(file, {}).problems), HasSubstr("help: did you mean builtin:grpo?")) << file;
  EXPECT_THAT(render(load_pipeline("nowhere/of_mine.toml", {}).problems), Not(HasSubstr("did you mean")));
}

// Only names of the list are taken: no path leads out of the folder.
TEST(Builtin, ANameIsNoPath) {
  for (const char* name : {"../pipelines/ppo", "ppo.toml", "/etc/passwd", ""}) {
    const LoadResult result = parse_pipeline("extends = \"builtin:" + std::string(name) + "\"\n", "p.toml", ".", {});
    EXPECT_THAT(render(result.problems), HasSubstr("no pipeline that comes with the program")) << name;
  }
}

}  // namespace
}  // namespace sluice::dsl::builtin_test
