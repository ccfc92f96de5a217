#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/check/check.h"
#include "engine/contract/world/publication.h"
#include "engine/ranks/mailed_reductions.h"
#include "engine/run/run.h"
#include "tests/engine/ranks/mail_in_one_process.h"
#include "tests/engine/ranks/parcels_in_one_process.h"
#include "tests/engine/ranks/publications_in_one_process.h"
#include "tests/engine/ranks_pipeline.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_world.h"
#include "tests/temporary_folder.h"

// Ranks that sample, of which one cannot take over the weights of a version.
namespace sluice::engine::roles_failure_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// What has landed cannot be read: as a copy of it that finds no memory.
class UnreadableLanding final : public Landing {
 public:
  explicit UnreadableLanding(std::shared_ptr<Landing> landing) : landing_(std::move(landing)) {}
  std::span<std::byte> bytes() const override { throw std::bad_alloc(); }
  const std::shared_ptr<Landing>& landing() const { return landing_; }

 private:
  const std::shared_ptr<Landing> landing_;
};

// A publication whose n-th landing is such a one.
class UnreadablePublication final : public Publication {
 public:
  UnreadablePublication(std::unique_ptr<Publication> publication, int64_t readable)
      : publication_(std::move(publication)), left_(readable) {}

  std::shared_ptr<std::byte> new_source(size_t bytes) override { return publication_->new_source(bytes); }
  std::vector<Range> stretches(Range range) const override { return publication_->stretches(range); }
  void offer(int64_t version, Range range, std::shared_ptr<const std::byte> bytes, std::vector<uint32_t> checksums) override {
    publication_->offer(version, range, std::move(bytes), std::move(checksums));
  }
  std::shared_ptr<Landing> new_landing() override {
    auto landing = publication_->new_landing();
    if (left_-- != 0) return landing;
    return std::make_shared<UnreadableLanding>(std::move(landing));
  }
  void receive(int64_t version, std::shared_ptr<Landing> into) override {
    const auto unreadable = std::dynamic_pointer_cast<UnreadableLanding>(into);
    publication_->receive(version, unreadable ? unreadable->landing() : std::move(into));
  }
  void acknowledge(int64_t version) override { publication_->acknowledge(version); }

 private:
  const std::unique_ptr<Publication> publication_;
  int64_t left_;
};

class UnreadablePublications final : public Publications {
 public:
  UnreadablePublications(Publications& publications, int64_t readable) : publications_(publications), readable_(readable) {}
  std::unique_ptr<Publication> publication(PublicationLayout layout, Publication::Events events) override {
    return std::make_unique<UnreadablePublication>(publications_.publication(std::move(layout), std::move(events)), readable_);
  }

 private:
  Publications& publications_;
  const int64_t readable_;
};

class RolesFailure : public ::testing::TestWithParam<int64_t> {  // the policy lag
 protected:
  RolesFailure() {
    toy::register_toys(registry_);
    toy::register_tallies(registry_);
  }

  // The failure of each rank, of a plan for some that train and two that sample. Each hears of the first one as it would over a
  // network. `readable`: how many versions that rank can read; -1: all.
  std::vector<std::string> failures(const Plan& plan, int of_rank, int64_t readable) {
    testing::MailInOneProcess mail(plan.ranks, 1, 0);
    testing::ParcelsInOneProcess parcels(plan.ranks, 1, 0);
    testing::PublicationsInOneProcess publications(plan.ranks, 1, 0);
    UnreadablePublications unreadable(publications.rank(of_rank), readable);
    std::vector<std::unique_ptr<MailedReductions>> reductions;
    std::vector<std::unique_ptr<engine::Run>> runs;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      reductions.push_back(std::make_unique<MailedReductions>(mail.rank(rank), MailedReductions::Gradients(), plan.owners()));
      Publications& own = rank == of_rank ? static_cast<Publications&>(unreadable) : publications.rank(rank);
      runs.push_back(std::make_unique<engine::Run>(
          plan,
          RunOptions{.reductions = reductions.back().get(), .links = RankLinks{mail.rank(rank), parcels.rank(rank), &own}}));
    }
    std::vector<std::string> failures(runs.size());
    {
      std::vector<std::jthread> threads;
      for (size_t rank = 0; rank < runs.size(); ++rank) {
        threads.emplace_back([&, rank] {
          const RunSummary summary = runs[rank]->execute();
          if (!summary.error) return;
          failures[rank] = message_of<std::exception>([&] { std::rethrow_exception(summary.error); });
          for (size_t other = 0; other < runs.size(); ++other)
            if (other != rank) runs[other]->fail(summary.error);
        });
      }
    }
    mail.close();
    parcels.close();
    return failures;
  }

  Registry registry_;
};

TEST_P(RolesFailure, AVersionThatCannotBeTakenEndsTheRunAndIsNamed) {
  toy::RanksShape shape{.groups = 6, .lag = GetParam(), .iterations = 6, .training_ranks = 2, .sampling_ranks = 2};
  const CheckResult checked = check(toy::ranks_pipeline(shape, 1), registry_);
  ASSERT_TRUE(checked.plan) << render(checked.problems);
  for (const std::string& failure : failures(*checked.plan, /*of_rank=*/3, /*readable=*/2))
    EXPECT_THAT(failure, AllOf(HasSubstr("taking version 3 of model 'policy' on rank 3 failed"), HasSubstr("out of memory")));
}

// What rank 0 has left to sample when it fails is not all that there was.
TEST_P(RolesFailure, IsNoEndOfTheRunForThoseThatSample) {
  toy::RanksShape shape{.groups = 6, .lag = GetParam(), .iterations = 6, .training_ranks = 1, .sampling_ranks = 2};
  const auto add_failing = [](PipelineBuilder& builder) {
    builder.node("failing", "toy_mix", {"rollout"},
                 {{"reads", Array{{.data = std::string("drawn"), .where = {}, .base = {}}}},
                  {"writes", std::string("mixed")},
                  {"fail_in_iteration", int64_t{3}}});
  };
  const CheckResult checked = check(toy::ranks_pipeline(shape, 1, add_failing), registry_);
  ASSERT_TRUE(checked.plan) << render(checked.problems);
  for (const std::string& failure : failures(*checked.plan, /*of_rank=*/2, /*readable=*/-1))
    EXPECT_THAT(failure, HasSubstr("'failing'"));
}

INSTANTIATE_TEST_SUITE_P(Lags, RolesFailure, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace sluice::engine::roles_failure_test
