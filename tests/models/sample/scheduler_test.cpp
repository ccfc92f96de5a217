#include "models/sample/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "base/error.h"
#include "tests/models/allocation_counter.h"

namespace sluice::models::scheduler_test {
namespace {

std::vector<int64_t> prompt_of(int64_t seed, int64_t length) {
  std::vector<int64_t> prompt;
  for (int64_t i = 0; i < length; ++i) prompt.push_back(seed * 1000 + i);
  return prompt;
}

SampleRequest request(uint64_t id, PromptTokens prompt, int64_t max_new_tokens) {
  return {.id = id, .prompt = std::move(prompt), .max_new_tokens = max_new_tokens, .stream = RandomStream(1, id)};
}

GenerationLimits limits(int64_t kv_blocks, KvAdmission admission = KvAdmission::kWorstCase) {
  return {
      .max_running_samples = 32, .max_step_tokens = 2048, .kv_block_size = 16, .kv_blocks = kv_blocks, .admission = admission};
}

// A scheduler whose samples get token 7 each time, and which remembers what each slot of each block holds: the token and its
// position. That tells whether blocks are shared, copied and overwritten as they should.
class Played {
 public:
  using Slot = std::pair<int64_t, int64_t>;  // position and token

  explicit Played(const GenerationLimits& limits)
      : scheduler(limits), size_(limits.kv_block_size), slots_(static_cast<size_t>(limits.kv_blocks * size_)) {}

  std::vector<uint64_t> step() {
    scheduler.plan();
    for (const auto& [from, to] : scheduler.copies())
      std::copy_n(slots_.begin() + from * size_, size_, slots_.begin() + to * size_);
    for (const auto& sample : scheduler.running()) write(*sample);
    for (const auto& sample : scheduler.running()) check(*sample, sample->cached + sample->scheduled);
    const auto runs = [](const auto& sample) { return !sample->paused; };
    const auto oldest = std::ranges::find_if(scheduler.running(), runs);
    if (oldest != scheduler.running().end()) {
      EXPECT_GT((*oldest)->scheduled, 0) << "sample " << (*oldest)->request.id;
    }
    scheduler.advance();
    std::vector<uint64_t> ended;
    for (const auto& sample : scheduler.running()) {
      check(*sample, sample->cached);
      if (sample->row < 0) continue;
      sample->result.tokens.push_back(7);
      ++scheduler.work().sampled_tokens;
      const auto count = static_cast<int64_t>(sample->result.tokens.size());
      if (after_token) after_token(*sample);
      if (sample->paused || count < sample->request.max_new_tokens) continue;
      ended.push_back(sample->request.id);
      scheduler.finish(*sample);
    }
    scheduler.drop_done();
    check_references();
    return ended;
  }

  std::vector<uint64_t> finish() {
    std::vector<uint64_t> order;
    for (int steps = 0; !scheduler.idle() && steps < 10000; ++steps) {
      for (const uint64_t id : step()) order.push_back(id);
      prompt_tokens += scheduler.work().prompt_tokens;
      preemptions += scheduler.work().preemptions;
    }
    EXPECT_TRUE(scheduler.idle());
    EXPECT_EQ(scheduler.pool().in_use(), 0);
    return order;
  }

  Scheduler scheduler;
  std::function<void(Sample&)> after_token;
  int64_t prompt_tokens = 0, preemptions = 0;

 private:
  int64_t token(const Sample& sample, int64_t position) const {
    const int64_t prompt = sample.prompt();
    return position < prompt ? sample.request.prompt.ids()[static_cast<size_t>(position)]
                             : sample.result.tokens[static_cast<size_t>(position - prompt)];
  }

  Slot& slot(const Sample& sample, int64_t position) {
    return slots_[static_cast<size_t>(sample.blocks[static_cast<size_t>(position / size_)] * size_ + position % size_)];
  }

  void write(const Sample& sample) {
    const std::span<const int64_t> tokens = Scheduler::next_tokens(sample);
    for (int64_t i = 0; i < sample.scheduled; ++i) {
      ASSERT_EQ(tokens[static_cast<size_t>(i)], token(sample, sample.cached + i));
      slot(sample, sample.cached + i) = {sample.cached + i, tokens[static_cast<size_t>(i)]};
    }
  }

  void check(const Sample& sample, int64_t cached) {
    for (int64_t i = 0; i < cached; ++i)
      ASSERT_EQ(slot(sample, i), Slot(i, token(sample, i))) << "sample " << sample.request.id << " position " << i;
  }

  void check_references() {
    std::map<int32_t, int32_t> held;
    for (const auto& sample : scheduler.running())
      for (const int32_t block : sample->blocks) ++held[block];
    for (int32_t block = 0; block < scheduler.pool().blocks(); ++block)
      ASSERT_EQ(scheduler.pool().references(block), held[block]) << "block " << block;
  }

  int64_t size_;
  std::vector<Slot> slots_;
};

TEST(Scheduler, SixteenSamplesOfAPromptReadItOnce) {
  Played played(limits(1000));
  const PromptTokens prompt = prompt_of(1, 512);
  for (uint64_t id = 0; id < 16; ++id) played.scheduler.submit(request(id, prompt, 5));
  played.step();
  EXPECT_EQ(played.scheduler.work().prompt_tokens, 512);
  EXPECT_EQ(played.scheduler.work().reused_tokens, 15 * 512);
  EXPECT_EQ(played.scheduler.work().sampled_tokens, 16);
  EXPECT_EQ(played.scheduler.pool().in_use(), 32);
  played.finish();
  EXPECT_EQ(played.prompt_tokens, 0);
}

TEST(Scheduler, EqualPromptsAreSharedWhoeverHoldsThem) {
  Played played(limits(1000));
  for (uint64_t id = 0; id < 4; ++id) played.scheduler.submit(request(id, prompt_of(1, 40), 5));
  played.finish();
  EXPECT_EQ(played.prompt_tokens, 40);
}

TEST(Scheduler, APartlyFilledBlockIsCopiedForAllButOneOfThoseThatShareIt) {
  Played played(limits(1000));
  const PromptTokens prompt = prompt_of(1, 40);
  for (uint64_t id = 0; id < 4; ++id) played.scheduler.submit(request(id, prompt, 5));
  played.step();
  EXPECT_EQ(played.scheduler.pool().in_use(), 3);
  EXPECT_TRUE(played.scheduler.copies().empty());
  played.step();
  EXPECT_EQ(played.scheduler.copies().size(), 3u);
  EXPECT_EQ(played.scheduler.pool().in_use(), 2 + 4);
  played.finish();
}

TEST(Scheduler, ASampleThatStartsLaterReadsTheLastTokenOfThePromptAlone) {
  for (const int64_t length : {1, 15, 16, 17, 40, 48}) {
    Played played({.max_running_samples = 1, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 10});
    for (uint64_t id = 0; id < 3; ++id) played.scheduler.submit(request(id, prompt_of(1, length), 5));
    played.finish();
    EXPECT_EQ(played.prompt_tokens, length + 2) << length;
  }
}

TEST(Scheduler, GroupsShareTheWholeBlocksThatTheirPromptsBeginWith) {
  Played played(limits(1000));
  for (int64_t group = 0; group < 3; ++group) {
    std::vector<int64_t> prompt = prompt_of(0, 40);
    prompt.insert(prompt.end(), static_cast<size_t>(group + 1), 500 + group);
    played.scheduler.submit(request(static_cast<uint64_t>(group), prompt, 5));
  }
  played.finish();
  EXPECT_EQ(played.prompt_tokens, 41 + (42 - 32) + (43 - 32));
}

TEST(Scheduler, APromptThatEndedIsReusedUntilItsBlocksAreTaken) {
  Played played(limits(6));
  const PromptTokens first = prompt_of(1, 48);
  const auto read = [&](PromptTokens prompt) {
    played.scheduler.submit(request(1, std::move(prompt), 1));
    played.prompt_tokens = 0;
    played.finish();
    return played.prompt_tokens;
  };
  EXPECT_EQ(read(first), 48);
  EXPECT_EQ(read(first), 1);
  EXPECT_EQ(read(prompt_of(2, 48)), 48);
  EXPECT_EQ(read(first), 1);
  EXPECT_EQ(read(prompt_of(3, 64)), 64);  // takes the blocks that were freed first
  EXPECT_EQ(read(prompt_of(2, 48)), 48);
}

TEST(Scheduler, PrefixesAreForgottenWhenTheWeightsChange) {
  Played played(limits(10));
  for (int round = 0; round < 2; ++round) {
    played.scheduler.submit(request(1, prompt_of(1, 40), 1));
    played.finish();
    played.scheduler.forget_prefixes();
  }
  EXPECT_EQ(played.prompt_tokens, 80);
}

// Who runs goes on with what it has; who starts then shares nothing of it.
TEST(Scheduler, PrefixesOfSamplesThatRunAreForgottenToo) {
  Played played(limits(10));
  played.scheduler.submit(request(1, prompt_of(1, 40), 5));
  played.step();
  played.scheduler.forget_prefixes();
  played.scheduler.submit(request(2, prompt_of(1, 40), 5));
  played.finish();
  EXPECT_EQ(played.prompt_tokens, 40) << "of the second sample";
}

TEST(Scheduler, TheWorstCaseOfAGroupCountsItsPromptOnce) {
  Played played(limits(4 + 8));  // 64 tokens of the prompt, and one block more for each of eight samples
  const PromptTokens prompt = prompt_of(1, 64);
  for (uint64_t id = 0; id < 8; ++id) played.scheduler.submit(request(id, prompt, 17));
  played.step();
  EXPECT_EQ(played.scheduler.running().size(), 8u);
  played.finish();
  EXPECT_EQ(played.preemptions, 0);
}

TEST(Scheduler, OnDemandMoreStartThanTheirWorstCasesHaveRoomAndTheYoungestIsPreempted) {
  Played worst(limits(8)), played(limits(8, KvAdmission::kOnDemand));
  for (Played* p : {&worst, &played}) {
    for (uint64_t id = 0; id < 4; ++id) p->scheduler.submit(request(id, prompt_of(static_cast<int64_t>(id), 16), 64));
    p->step();
  }
  EXPECT_EQ(worst.scheduler.running().size(), 1u);
  EXPECT_EQ(played.scheduler.running().size(), 4u);
  EXPECT_EQ(played.finish(), (std::vector<uint64_t>{0, 1, 2, 3}));
  EXPECT_GT(played.preemptions, 0);
  worst.finish();
  EXPECT_EQ(worst.preemptions, 0);
}

TEST(Scheduler, APreemptedSampleKeepsItsPlaceInTheOrder) {
  Played played({.max_running_samples = 2, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 20});
  for (uint64_t id = 0; id < 4; ++id) played.scheduler.submit(request(id, prompt_of(static_cast<int64_t>(id), 8), 10));
  played.step();
  played.scheduler.preempt(0);
  played.scheduler.restart(0);
  played.step();
  EXPECT_EQ(played.scheduler.work().preemptions, 1);
  EXPECT_EQ(played.scheduler.running()[0]->request.id, 0u);
  EXPECT_EQ(played.finish(), (std::vector<uint64_t>{0, 1, 2, 3}));
}

TEST(Scheduler, APreemptedSampleDoesNotRunBeforeItIsRestarted) {
  Played played(limits(20));
  for (uint64_t id = 0; id < 3; ++id) played.scheduler.submit(request(id, prompt_of(static_cast<int64_t>(id), 8), 3));
  played.scheduler.preempt(2);  // before it ran
  played.step();
  played.scheduler.preempt(0);
  EXPECT_EQ(played.step(), std::vector<uint64_t>{});
  EXPECT_EQ(played.step(), std::vector<uint64_t>{1});
  EXPECT_TRUE(played.scheduler.running().empty());
  EXPECT_EQ(played.scheduler.waiting(), 2);
  EXPECT_THROW(played.scheduler.preempt(0), InternalError);
  played.scheduler.restart(2);
  played.scheduler.restart(0);
  EXPECT_THROW(played.scheduler.restart(0), InternalError);
  EXPECT_EQ(played.finish(), (std::vector<uint64_t>{0, 2}));
}

TEST(Scheduler, WhoWaitedForASampleThatIsPreemptedReadsThePromptItself) {
  Played played({.max_running_samples = 8, .max_step_tokens = 10, .kv_block_size = 16, .kv_blocks = 40});
  const PromptTokens prompt = prompt_of(1, 40);
  for (uint64_t id = 0; id < 3; ++id) played.scheduler.submit(request(id, prompt, 5));
  played.step();
  played.step();  // 20 of 40 tokens
  played.scheduler.preempt(0);
  played.scheduler.restart(0);
  played.finish();
  EXPECT_EQ(played.prompt_tokens, 2 * 24);  // all after the first block, by both: nobody waits for a younger one
}

TEST(Scheduler, APausedSampleGivesWayToAnOlderOne) {
  Played played({.max_running_samples = 1, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 4});
  played.after_token = [](Sample& sample) { sample.paused = sample.result.tokens.size() == 1; };
  played.scheduler.submit(request(1, prompt_of(1, 8), 5));
  played.scheduler.submit(request(2, prompt_of(2, 8), 5));
  played.step();
  played.scheduler.preempt(1);
  played.scheduler.restart(1);
  played.step();  // sample 2 pauses in the only place
  EXPECT_EQ(played.scheduler.running()[0]->request.id, 2u);
  played.scheduler.resume(*played.scheduler.find(1), std::vector<int64_t>{9});
  played.step();
  EXPECT_EQ(played.scheduler.running()[0]->request.id, 1u);
  EXPECT_EQ(played.scheduler.waiting(), 1);
  played.scheduler.resume(*played.scheduler.find(2), {});
  EXPECT_EQ(played.finish(), (std::vector<uint64_t>{1, 2}));
}

TEST(Scheduler, APausedSampleDoesNotGiveWayToAYoungerOne) {
  Played played({.max_running_samples = 1, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 4});
  played.after_token = [](Sample& sample) { sample.paused = true; };
  played.scheduler.submit(request(1, prompt_of(1, 8), 5));
  played.scheduler.submit(request(2, prompt_of(2, 8), 5));
  for (int i = 0; i < 3; ++i) played.step();
  EXPECT_EQ(played.scheduler.running()[0]->request.id, 1u);
}

TEST(Scheduler, AStepInWhichNobodyStartsOrIsPreemptedAllocatesNothing) {
  for (const KvAdmission admission : {KvAdmission::kWorstCase, KvAdmission::kOnDemand}) {
    Scheduler scheduler(limits(64, admission));
    const PromptTokens prompt = prompt_of(1, 40);
    for (uint64_t id = 0; id < 8; ++id) scheduler.submit(request(id, prompt, 60));
    const auto step = [&] {
      scheduler.plan();
      scheduler.advance();
      for (const auto& sample : scheduler.running()) sample->result.tokens.push_back(7);
    };
    step();
    for (int i = 0; i < 50; ++i) EXPECT_EQ(allocations_in(step), 0) << "step " << i;  // the first copies blocks
    EXPECT_EQ(scheduler.running().size(), 8u);
  }
}

// Everything at random: what each slot holds is checked in every step, and that the oldest sample goes on.
TEST(Scheduler, RandomMixesKeepTheirBlocksApartAndFinish) {
  RandomStream random(11, 0);
  const auto below = [&](int64_t bound) { return static_cast<int64_t>(random.below(static_cast<uint64_t>(bound))); };
  for (int mix = 0; mix < 600; ++mix) {
    const int64_t places = 1 + below(8);
    const bool worst_case = below(2) == 0;  // and nobody preempts
    Played played({.max_running_samples = places,
                   .max_step_tokens = places + below(40),
                   .kv_block_size = 16,
                   .kv_blocks = 8 + below(30),
                   .admission = worst_case || below(2) == 0 ? KvAdmission::kWorstCase : KvAdmission::kOnDemand});
    const int64_t count = 1 + below(20);
    for (int64_t id = 0; id < count; ++id) {
      std::vector<int64_t> prompt = prompt_of(0, 1 + below(60));
      if (below(3) == 0) prompt[static_cast<size_t>(below(static_cast<int64_t>(prompt.size())))] = 100 + below(3);
      const PromptTokens shared = prompt;
      for (int64_t s = 1 + below(4); s > 0; --s)
        played.scheduler.submit(request(static_cast<uint64_t>(id * 10 + s), shared, 1 + below(60)));
    }
    std::map<uint64_t, int64_t> paused;
    std::vector<uint64_t> held;
    played.after_token = [&](Sample& sample) {
      const auto room = sample.request.max_new_tokens - static_cast<int64_t>(sample.result.tokens.size());
      if (room <= 4 || below(12) != 0) return;
      sample.paused = true;
      paused[sample.request.id] = below(6);
    };
    int steps = 0, preemptions = 0;
    for (; !played.scheduler.idle() && steps < 5000; ++steps) {
      played.step();
      ASSERT_FALSE(::testing::Test::HasFatalFailure());
      for (auto next = paused.begin(); next != paused.end();) {
        if (next->second-- > 0) {
          ++next;
          continue;
        }
        played.scheduler.resume(*played.scheduler.find(next->first), std::vector<int64_t>(static_cast<size_t>(below(4)), 5));
        next = paused.erase(next);
      }
      if (worst_case) {
        ASSERT_EQ(played.scheduler.work().preemptions, 0);
        continue;
      }
      if (preemptions < 20 && below(10) == 0 && !played.scheduler.running().empty()) {
        ++preemptions;
        const auto running = played.scheduler.running();
        held.push_back(running[static_cast<size_t>(below(static_cast<int64_t>(running.size())))]->request.id);
        played.scheduler.preempt(held.back());
      }
      if (!held.empty() && below(4) == 0) {
        played.scheduler.restart(held.back());
        held.pop_back();
      }
    }
    ASSERT_TRUE(played.scheduler.idle()) << "mix " << mix << " did not end";
    ASSERT_EQ(played.scheduler.pool().in_use(), 0);
  }
}

}  // namespace
}  // namespace sluice::models::scheduler_test
