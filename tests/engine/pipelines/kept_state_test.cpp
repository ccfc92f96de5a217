// Nodes whose code does what their contracts do not say with what they keep, or throws as it takes it over: the run ends at once,
// and says which node it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/error.h"
#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/run/run.h"
#include "tests/engine/run_outcome.h"
#include "tests/engine/toy_world.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::kept_state_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct KeeperParams {
  std::string path;
  int64_t kept_bytes = 0;
  std::string fault;
};

class Keeper final : public Node {
 public:
  static void describe(Contract<KeeperParams>& c) {
    c.type("keeper", "keeps what it is told to");
    c.param("path", &KeeperParams::path).doc("its file").required();
    c.param("kept_bytes", &KeeperParams::kept_bytes).doc("of text").harmless();
    c.param("fault", &KeeperParams::fault).doc("what goes wrong").harmless();
    c.reads(toy::kDrawn);
    c.metric("toy/NODE/kept", Metric::kSum, "so that it has an effect");
    c.needs([](const KeeperParams& p, NodeNeeds& needs) { needs.files.push_back({"path", p.path}); });
  }
  Keeper(const KeeperParams& params, NodeResources& resources)
      : params_(params), file_(resources.run_folder.append_to(params.path)) {
    if (params.fault == "no file") std::filesystem::remove(resources.run_folder.path / params.path);
  }

  void process(MicroBatch&) override {}

  void save(StateWriter& state) const override {
    state.put("text", std::string(static_cast<size_t>(params_.kept_bytes), 'x'));
    state.file(params_.fault == "file" ? "../../out.txt" : params_.path, params_.fault == "length" ? -1 : file_.size());
  }

  void load(const StateReader&) override {
    if (params_.fault == "load throws") throw std::runtime_error("no licence");
    if (params_.fault == "load throws a number") throw 1;
    if (params_.fault == "load has a bug") throw InternalError("a bug of it");
  }

 private:
  const KeeperParams params_;
  GatheredFile file_;
};

class KeptState : public ::testing::Test {
 protected:
  KeptState() {
    toy::register_toys(registry_);
    registry_.add<Keeper>();
  }

  // Why a run of nodes that each keep as much failed; empty: it did not. It goes on where there is a checkpoint.
  std::string failure(const std::string& fault, int64_t kept_bytes = 10, int nodes = 1, int64_t iterations = 2) {
    PipelineBuilder builder("keepers", iterations);
    builder.budget(64, 16).set("runtime", "cores", int64_t{1}).model("policy", {});
    builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{8}}});
    builder.node("rollout", "toy_rollout", {"source"}, {{"model", std::string("policy")}, {"worst_sample_tokens", int64_t{4}}});
    for (int i = 0; i < nodes; ++i) {
      const std::string name = "k" + std::to_string(i);
      builder.node(name, "keeper", {"rollout"}, {{"path", name + ".jsonl"}, {"fault", fault}, {"kept_bytes", kept_bytes}});
    }
    const CheckResult checked = check(builder.build(), registry_);
    EXPECT_TRUE(checked.plan) << render(checked.problems);
    if (!checked.plan) return {};
    const fs::path checkpoint = newest_checkpoint(folder_.path());
    if (checkpoint.empty()) start_over(folder_.path());
    try {
      engine::Run run(*checked.plan, {.folder = folder_.path(), .resume_from = checkpoint, .files = unsynced_disk()});
      if (const RunSummary summary = run.execute(); summary.error) std::rethrow_exception(summary.error);
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  }

  Registry registry_;
  const TemporaryFolder folder_;
};

TEST_F(KeptState, OfANodeIsNoLargerThanACheckpointCanHold) {
  EXPECT_EQ(failure("", kMostStateBytes - 1000), "");
  EXPECT_THAT(failure("", kMostStateBytes, 1, 4),
              AllOf(HasSubstr("node 'k0' failed in iteration 2"), HasSubstr("the state has 16.8 MB with \"text\""),
                    HasSubstr("bug of the node's type")));
}

// Each for itself is within its bound.
TEST_F(KeptState, OfAllNodesTogetherIsNoLargerThanACheckpointCanHold) {
  EXPECT_THAT(failure("", kMostStateBytes - 1000, 4),
              AllOf(HasSubstr("the nodes of this pipeline keep 67.1 MB together"), HasSubstr("a checkpoint can hold 50.3 MB")));
}

TEST_F(KeptState, HasNoFileThatTheContractDoesNotDeclare) {
  EXPECT_THAT(failure("file"), AllOf(HasSubstr("node 'k0' failed in iteration 0"),
                                     HasSubstr("appends to file \"../../out.txt\", which its contract does not declare")));
  EXPECT_THAT(failure("length"), HasSubstr("it says that file \"k0.jsonl\" has -1 bytes"));
}

// It declares the file, and never makes it.
TEST_F(KeptState, AFileThatIsNotThereIsToldWithItsNode) {
  EXPECT_THAT(failure("no file"), HasSubstr("what node 'k0' appends to cannot be saved: "));
}

TEST_F(KeptState, WhatLoadThrowsIsToldWithNodeAndCheckpoint) {
  ASSERT_EQ(failure(""), "");
  const std::string where = "node 'k0' cannot go on from " + (folder_.path() / "checkpoints" / "2").string();
  EXPECT_THAT(failure("load throws", 10, 1, 4), HasSubstr(where + ": load() failed: no licence"));
  EXPECT_THAT(failure("load throws a number", 10, 1, 4),
              HasSubstr(where + ": load() failed: it threw something that is no std::exception"));
  EXPECT_THAT(failure("load has a bug", 10, 1, 4), HasSubstr(where + ": a bug of it"));
}

}  // namespace
}  // namespace sluice::engine::kept_state_test
