#include "engine/plan/data_look.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/error.h"
#include "engine/check/check.h"
#include "tests/engine/spec_builder.h"

namespace sluice::engine::data_look_test {
namespace {

using ::testing::HasSubstr;

constexpr Column<float> kNumber{"number", Extent::kSample};

struct FileParams {
  std::string file;
  bool fails = false;
  std::filesystem::path path = "rows.bin";
};

/// A source of a plugin, whose data is nothing but the text of a parameter.
class FromFile final : public Source {
 public:
  static void describe(Contract<FileParams>& c) {
    c.type("from_file", "numbers");
    c.param("file", &FileParams::file);
    c.param("fails", &FileParams::fails);
    c.param("path", &FileParams::path);
    c.writes(kNumber);
    c.needs([](const FileParams&, NodeNeeds& needs) {
      needs.groups_per_iteration = needs.samples_per_group = needs.worst_sample_tokens = 1;
    });
    c.data([](const FileParams& params, DataLook& look) {
      if (params.fails) throw UserError("the file " + params.path.string() + " is not there");
      look.warning("file", look.all() ? "all was read" : "the beginning was read", {"a note"}, "help");
      if (params.file == "odd") look.error("file", "it is odd");
    });
  }
  explicit FromFile(const FileParams&) {}
  bool next_group(Group&) override { return false; }
};

struct NoParams {};
class Reads final : public Node {
 public:
  static void describe(Contract<NoParams>& c) {
    c.type("reads", "numbers");
    c.reads(kNumber);
    c.metric("toy/NODE/sum", Metric::kMean, "of them");
  }
  explicit Reads(const NoParams&) {}
  void process(MicroBatch&) override {}
};

Problems look(const std::string& keys, DataDepth depth = DataDepth::kBeginning) {
  Registry registry;
  registry.add<FromFile>();
  registry.add<Reads>();
  const PipelineSpec spec = testing::spec_of(
      "[pipeline]\nname = \"p\"\niterations = 1\n[budget]\ntokens_in_flight = 8\nmicro_batch_tokens = 8\n"
      "[nodes.rows]\ntype = \"from_file\"\n" +
      keys + "[nodes.sum]\ntype = \"reads\"\ninputs = [\"rows\"]\n");
  const CheckResult result = check(spec, registry);
  EXPECT_TRUE(result.plan) << render(result.problems);
  return result.plan ? check_data(*result.plan, spec, depth) : result.problems;
}

TEST(DataLook, ProblemsStandAtTheKeysOfTheNode) {
  const Problems problems = look("file = \"odd\"\n");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].kind, "data-doubtful");
  EXPECT_EQ(problems[0].severity, Severity::kWarning);
  EXPECT_EQ(problems[1].kind, "data-unusable");
  EXPECT_THAT(render(problems[1]), HasSubstr("pipeline.toml:9:8: error: it is odd"));
}

TEST(DataLook, AKeyThatIsNotWrittenIsShownAtTheHeader) {
  EXPECT_THAT(render(look("")), HasSubstr("pipeline.toml:7:1: warning: the beginning was read"));
}

TEST(DataLook, WhatIsThrownIsAProblemOfTheNode) {
  const Problems problems = look("fails = true\n");
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].kind, "data-unusable");
  EXPECT_THAT(render(problems), HasSubstr("pipeline.toml:7:1: error: the file rows.bin is not there"));
}

TEST(DataLook, WhatIsThrownOfAFileStandsAtTheKeyThatNamesIt) {
  EXPECT_THAT(render(look("fails = true\npath = \"rows.txt\"\n")),
              HasSubstr("pipeline.toml:10:8: error: the file rows.txt is not there"));
}

TEST(DataLook, SaysWhetherAllIsToBeLookedAt) {
  EXPECT_THAT(render(look("", DataDepth::kAll)), HasSubstr("warning: all was read"));
}

}  // namespace
}  // namespace sluice::engine::data_look_test
