#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "engine/check/check.h"
#include "engine/contract/spec/pipeline_builder.h"
#include "engine/schedule/help/mutual_help.h"
#include "tests/engine/ranks/mail_in_one_process.h"
#include "tests/engine/ranks/parcels_in_one_process.h"
#include "tests/engine/toy_world.h"

namespace sluice::engine::testing {

inline constexpr Column<int64_t> kNumber{"number", Extent::kGroup};

/// Three ranks of a plan with one path, which make groups for each other.
class HelpingRanks : public ::testing::Test {
 protected:
  HelpingRanks() {
    toy::register_toys(registry_);
    PipelineBuilder builder("ranks", 1);
    builder.budget(64, 8).set("runtime", "cores", int64_t{2});
    builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{6}}});
    builder.node("rollout", "toy_rollout", {"source"}, {});
    checked_ = check(builder.build(), registry_, 3);
    if (!checked_.plan) throw std::runtime_error(render(checked_.problems));
    for (int rank = 0; rank < 3; ++rank) {
      const auto changed = [this] {
        const std::lock_guard lock(mutex_);
        changed_.notify_all();
      };
      ranks_.push_back(std::make_unique<MutualHelp>(*checked_.plan, RankLinks{mail_.rank(rank), parcels_.rank(rank)}, changed));
      ranks_.back()->listen();
    }
  }
  ~HelpingRanks() override {
    for (const auto& rank : ranks_) rank->forget();
    mail_.close();
    parcels_.close();
    EXPECT_TRUE(mail_.failures().empty());
    for (const std::exception_ptr& failure : parcels_.failures()) EXPECT_NO_THROW(std::rethrow_exception(failure));
  }

  MutualHelp& rank(size_t index) { return *ranks_[index]; }
  GroupAsker& asker(size_t index) { return ranks_[index]->asker(); }
  GroupOwner& owner(size_t index) { return ranks_[index]->owner(); }

  // It is gone, and the first rank learns that.
  void lose_rank(int lost) {
    mail_.lose(lost);
    parcels_.lose(lost);
    owner(0).lose(lost);
  }

  // What `get` gives at last.
  template <class Get>
  auto await(const Get& get) {
    auto got = get();
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, std::chrono::seconds(60), [&] { return got || (got = get()); });
    EXPECT_TRUE(came) << "it never came";
    return got;
  }
  auto answer_for(size_t index) {
    return await([this, index] { return asker(index).take_answer(0); });
  }

  static Group prompt(int64_t iteration, int64_t index) {
    Group group{.iteration = iteration, .index = index};
    group.layout.end_group();
    group.write(kNumber)[0] = 100 + index;
    return group;
  }

 private:
  Registry registry_;
  CheckResult checked_;
  MailInOneProcess mail_{3, 1, 50};
  ParcelsInOneProcess parcels_{3, 1, 50};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<MutualHelp>> ranks_;
};

}  // namespace sluice::engine::testing
