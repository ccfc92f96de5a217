#include "nodes/models/weights/received_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "nodes/models/language_model.h"
#include "tests/nodes/common_memory_in_threads.h"
#include "tests/nodes/models/same_packed.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::received_weights_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Publications that do what they are asked to. A version lands as soon as there is a place for it, and opens as soon as it is
/// acknowledged.
class ObedientPublications final : public engine::Publications {
 public:
  /// After so many acknowledgements there is no memory for another one.
  explicit ObedientPublications(int64_t acknowledgements = 1000) : left_(acknowledgements) {}

  std::unique_ptr<engine::Publication> publication(engine::PublicationLayout layout,
                                                   engine::Publication::Events events) override {
    return std::make_unique<Member>(*this, layout.bytes(), std::move(events));
  }

  std::vector<int64_t> acknowledged() {
    const std::lock_guard lock(mutex_);
    return acknowledged_;
  }

 private:
  class Place final : public engine::Landing {
   public:
    explicit Place(size_t bytes) : bytes_(bytes) {}
    std::span<std::byte> bytes() const override { return bytes_; }

   private:
    mutable std::vector<std::byte> bytes_;
  };

  class Member final : public engine::Publication {
   public:
    Member(ObedientPublications& of, size_t bytes, Events events) : of_(of), bytes_(bytes), events_(std::move(events)) {}

    std::shared_ptr<std::byte> new_source(size_t) override { throw InternalError("nobody publishes here"); }
    std::vector<engine::Range> stretches(engine::Range range) const override { return {range}; }
    void offer(int64_t, engine::Range, std::shared_ptr<const std::byte>, std::vector<uint32_t>) override {
      throw InternalError("nobody publishes here");
    }
    std::shared_ptr<engine::Landing> new_landing() override { return std::make_shared<Place>(bytes_); }
    void receive(int64_t version, std::shared_ptr<engine::Landing>) override {
      tell([this, version] { events_.landed(version, 0); });
    }
    void acknowledge(int64_t version) override {
      {
        const std::lock_guard lock(of_.mutex_);
        if (of_.left_-- == 0) throw std::bad_alloc();
        of_.acknowledged_.push_back(version);
      }
      tell([this, version] { events_.opened({.version = version}); });
    }

   private:
    void tell(const std::function<void()>& event) {
      const std::lock_guard lock(of_.mutex_);
      told_.push_back(std::async(std::launch::async, event));
    }

    ObedientPublications& of_;
    const size_t bytes_;
    const Events events_;
    std::vector<std::future<void>> told_;  // guarded by the mutex of the publications; last: it waits for all
  };

  std::mutex mutex_;  // of what follows
  int64_t left_;
  std::vector<int64_t> acknowledged_;
};

class ReceivedWeightsTest : public ::testing::Test {
 protected:
  static inline const PublicationRanks kRanks{.own = 1, .owners = 1, .receivers = {1}};

  WireLayout layout() const {
    return {weights_of().config(), models::Head::kLanguageModel, models::Precision::kFloat32, weights_of().weights().named()};
  }
  const models::Transformer& weights_of() const { return model_->forward().transformer(); }

  LandedModel landed(ObedientPublications& publications) const {
    return landed_model("actor", layout(), weights_of().weights(), kRanks, publications);
  }

  const testing::TinyFolder folder_;
  const std::shared_ptr<LanguageModel> model_ = testing::tiny_model(folder_.path(), {});
};

// What is told of a version, once.
struct Told {
  std::promise<std::exception_ptr> promise;

  engine::VersionReceived done() {
    return [this](const engine::ReceivedVersion& received) { promise.set_value(received.failure); };
  }
  std::string failure() {
    const std::exception_ptr failure = promise.get_future().get();
    if (!failure) return {};
    return message_of<std::exception>([&] { std::rethrow_exception(failure); });
  }
};

TEST_F(ReceivedWeightsTest, VersionsThatComeAreAcknowledgedAndTold) {
  ObedientPublications publications;
  SampledWeights sampled(weights_of().config(), models::Precision::kFloat32, at::kCPU, 2);
  sampled.take(0, weights_of().weights());
  ReceivedWeights received("actor", layout(), landed(publications), kRanks, publications, sampled);
  for (int64_t version = 1; version < 4; ++version) {
    Told told;
    received.receive(version, told.done());
    EXPECT_EQ(told.failure(), "");
    EXPECT_NO_THROW(sampled.at(version));
  }
  EXPECT_THAT(publications.acknowledged(), ElementsAre(1, 2, 3));
}

// A version before it is not the one that is there.
TEST_F(ReceivedWeightsTest, AVersionThatCannotBePackedIsToldAndNotAcknowledged) {
  ObedientPublications publications;
  SampledWeights sampled(weights_of().config(), models::Precision::kFloat32, at::kCPU, 2);
  sampled.take(7, weights_of().weights());
  ReceivedWeights received("actor", layout(), landed(publications), kRanks, publications, sampled);
  Told told;
  received.receive(1, told.done());
  EXPECT_THAT(told.failure(), HasSubstr("version 1 is published after 7"));
  EXPECT_THAT(publications.acknowledged(), IsEmpty());
}

TEST_F(ReceivedWeightsTest, WhoSamplesWithOthersPacksBehindTheOneThatLeads) {
  ObedientPublications publications;
  SampledWeights sampled(weights_of().config(), models::Precision::kFloat32, at::kCPU, 1, {}, {.place = 1, .ranks = 2});
  sampled.take(0, weights_of().weights());
  ReceivedWeights received("actor", layout(), landed(publications), kRanks, publications, sampled);
  Told told;
  received.receive(1, told.done());
  EXPECT_NO_THROW(sampled.at(0));
  EXPECT_THAT(publications.acknowledged(), IsEmpty());
  received.let_take(1);
  EXPECT_EQ(told.failure(), "");
  EXPECT_NO_THROW(sampled.at(1));
}

// Each of three ranks packs a part, and all read what one that is alone packs.
TEST_F(ReceivedWeightsTest, RanksThatHaveVersionsInCommonReadTheSame) {
  constexpr int kTogether = 3;
  testing::CommonMemoryInThreads memory(kTogether);
  std::atomic<int64_t> bytes = 0;
  memory.on_all([&](int rank) {
    ObedientPublications publications;
    SampledWeights sampled(weights_of().config(), models::Precision::kFloat32, at::kCPU, 2,
                           CommonCopies("actor", *memory.rank(rank)));
    const LandedModel place = landed(publications);
    sampled.take(0, place.weights);
    ReceivedWeights received("actor", layout(), place, kRanks, publications, sampled);
    for (int64_t version = 1; version < 6; ++version) {
      for (const auto& [name, tensor] : place.weights.named()) at::Tensor(tensor).add_(0.1F);
      Told told;
      received.receive(version, told.done());
      EXPECT_EQ(told.failure(), "");
      testing::expect_same(sampled.at(version), models::PackedWeights(place.weights));
    }
    bytes += sampled.bytes();
  });
  EXPECT_NEAR(static_cast<double>(bytes), 2.0 * static_cast<double>(model_->sampled().bytes()), kTogether);
}

TEST_F(ReceivedWeightsTest, AnEndWaitsForNoRankThatHasVersionsInCommon) {
  testing::CommonMemoryInThreads memory(2);
  memory.on_all([&](int rank) {
    ObedientPublications publications;
    SampledWeights sampled(weights_of().config(), models::Precision::kFloat32, at::kCPU, 1,
                           CommonCopies("actor", *memory.rank(rank)));
    sampled.take(0, weights_of().weights());
    Told told;
    ReceivedWeights received("actor", layout(), landed(publications), kRanks, publications, sampled);
    if (rank == 0) received.receive(1, told.done());  // and rank 1 does not
  });
}

// At the start of a run that goes on, of versions 3 to 5.
TEST_F(ReceivedWeightsTest, ARestoreThatCannotHaveAVersionThrows) {
  ObedientPublications publications(2);
  const engine::ModelUsage usage{
      .name = "actor", .versions = {.readable = 3}, .received = true, .receivers = {1}, .publications = &publications};
  ReceivedLanguageModel received(folder_.path(), weights_of(), layout(), landed(publications), usage);
  EXPECT_THROW(received.restore({}, {.oldest = 3, .newest = 5}), std::bad_alloc);
  EXPECT_THAT(publications.acknowledged(), ElementsAre(3, 4));
}

}  // namespace
}  // namespace sluice::nodes::received_weights_test
