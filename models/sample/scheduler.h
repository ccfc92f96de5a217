#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/sample/block_pool.h"
#include "models/sample/drafts.h"
#include "models/sample/prefix_index.h"
#include "models/sample/sample.h"

namespace sluice::models {

/// When a waiting sample starts.
enum class KvAdmission : uint8_t {
  kWorstCase,  // when the blocks of its worst case are free; what it shares with others is counted once
  kOnDemand,   // when the blocks of what it has to read are free, and one more for each that runs; it may be preempted later
};

struct GenerationLimits {
  int64_t max_running_samples = 256;  // samples that have a place, and may hold blocks of the KV cache, at a time
  int64_t max_step_tokens = 2048;     // tokens of one step, decoded and prompt together; at least max_running_samples
  int64_t kv_block_size = 16;         // tokens, a multiple of 16
  int64_t kv_blocks = 0;              // of the KV cache
  KvAdmission admission = KvAdmission::kWorstCase;
  DraftLimits drafts;  // with KvAdmission::kWorstCase: on demand nothing is guessed, since a sample grows by one token
};

/// What one step did.
struct StepWork {
  int64_t prompt_tokens = 0;   // read: of prompts, given, and again after a preemption; after a pause the token before it as well
  int64_t sampled_tokens = 0;  // one for each sample that got a token, and those that were guessed right
  int64_t guessed_steps = 0;   // samples that decoded where guesses are made, whether there was one or not
  int64_t drafted_tokens = 0;  // guessed
  int64_t kept_drafts = 0;     // of these, those that were sampled
  int64_t reused_tokens = 0;   // of prompts, not read because the cache had them
  int64_t preemptions = 0;     // samples that lost their blocks since the step before
};

/// A sample from submit() to its end, as the scheduler sees it.
struct Sample {
  SampleRequest request;
  SampleResult result;    // its tokens grow
  uint64_t age = 0;       // counts submissions, from 1: the smaller, the older
  bool paused = false;    // by the judge
  bool held = false;      // by preempt(), until restart()
  bool done = false;      // to be dropped
  int64_t row = -1;       // of the step's logits, from which its next token is sampled; -1: none; after it those of `drafts`
  int64_t cached = 0;     // tokens with keys and values in its blocks
  int64_t to_read = 0;    // its tokens up to there are read, as many at a time as there is room for; those after it one by one
  int64_t scheduled = 0;  // tokens of the step at hand
  std::vector<int64_t> drafts;          // what may be its next tokens, computed in the step at hand, too
  DraftLength draft_length;             // how many, where its text says them
  int64_t drafted = 0;                  // its tokens that the model which guesses has read for it, at least its prompt; 0: none
  bool ended = false;                   // with what it got in the last step
  std::vector<int32_t> blocks;          // with room for the cached tokens
  bool borrows = false;                 // the last block is another's: it is copied before this sample writes
  uint64_t leader = 0;                  // age of an older sample that reads the same prefix: this one waits for it; 0: none
  int64_t common = 0;                   // tokens of that prefix
  bool forks = false;                   // that prefix is the prompt of both, and the logits of its last token are wanted by both
  uint64_t piece = PrefixIndex::kRoot;  // of its prompt in the index, the last
  int64_t indexed = 0;                  // blocks of its prompt that the index knows

  int64_t prompt() const { return request.prompt.size(); }
  int64_t size() const { return prompt() + static_cast<int64_t>(result.tokens.size()); }
  bool decoding() const { return cached >= to_read; }
};

/// Decides what each step of generation computes: who starts, who reads how many tokens, which KV blocks hold them, who loses its
/// blocks. It moves no keys and values and knows no model.
///
/// A step has a budget of tokens. Every sample that decodes gets one of them; what is left goes to those that read, oldest first.
/// Samples start in the order of submission. Everything that is scarce goes to the older of two, so nothing starves.
///
/// Sharing. The blocks of a prompt are indexed when they have been computed, the last, partly filled one too. A sample that
/// starts takes from the index what its prompt begins with, from samples that run or whose blocks nobody has overwritten yet.
/// When an older sample is still reading the same prefix it waits for it; samples of the same prompt get the logits of its last
/// token from the one that read it. Nobody writes into another's block: of those that share a partly filled one, its owner goes
/// on in it, after what is shared, and the others copy it before their first token.
///
/// Preemption, when a sample needs a block and none is free: the youngest that runs gives back its blocks and waits, in order of
/// age, until it is read again: its prompt and all after it. The sample that asks may be the youngest itself.
///
/// Drafts. What is left of a step's tokens goes to guesses of samples that decode; a guess needs blocks of its sample's worst
/// case alone. Where another model guesses (DraftLimits::by_model) there is room for as many as are wanted, and it fills them in.
///
/// The oldest sample, of those that are not paused or held, can always finish. It runs: nobody starts before it, and where it
/// waits, after a pause, for a place or blocks, paused younger ones give them up, and the others end, pause or are preempted.
/// While it runs it is never preempted, because a younger one is as long as another runs; and when it runs alone, all blocks but
/// its own are free, and its worst case fits the cache (fits() is asked before submit()). It waits for no leader, who would be
/// older. Its prompt gets what is left of a step, which is at least one token, since max_step_tokens >= max_running_samples. So
/// each step brings it one token nearer to its end, and the same holds for the next oldest then. With kWorstCase nobody is
/// preempted but by preempt().
///
/// plan() and advance() allocate nothing while no sample starts or is preempted. Not thread-safe.
class Scheduler {
 public:
  struct BlockCopy {
    int32_t from = 0, to = 0;
  };

  /// `limits` are consistent.
  explicit Scheduler(const GenerationLimits& limits);

  bool fits(const SampleRequest& request) const { return worst_blocks(request) <= pool_.blocks(); }
  int64_t worst_blocks(const SampleRequest& request) const;

  Sample& submit(SampleRequest request);

  /// The step at hand: `scheduled`, `blocks` and `row` of the running samples are set; the tokens to read are next_tokens(). The
  /// copies() have to be made, in order, before anything is computed.
  void plan();
  std::span<const BlockCopy> copies() const { return copies_; }
  static std::span<const int64_t> next_tokens(const Sample& sample);

  /// Takes the tokens of the step as computed: what is to be computed has been noted by then. Samples that waited for one of the
  /// same prompt get its row, so that who draws from which row is known before anything is computed.
  void advance();

  /// The first so many of a sample's drafts were sampled, and their keys and values stay. Once for each sample with a row.
  void keep_drafts(Sample& sample, int64_t right);

  /// What guesses of another model cost: see DraftAgreement.
  void set_draft_costs(double guess, double doubling_rows) { agreement_.set_costs(guess, doubling_rows); }

  /// Those with a place, oldest first.
  std::span<const std::unique_ptr<Sample>> running() const { return running_; }

  /// Running, waiting or preempted; the first of that id; null: none.
  Sample* find(uint64_t id) const;

  /// Lets a paused sample go on; `tokens` are after it then, to be read.
  void resume(Sample& sample, std::span<const int64_t> tokens);

  /// Its blocks are given back; it is forgotten by drop_done().
  void finish(Sample& sample);
  void drop_done();

  /// The sample gives back its blocks and its place, if it has them, and does not run before restart(). Throws InternalError when
  /// there is no sample of that id, or when it has been preempted so already (restart(): when it has not).
  void preempt(uint64_t id);
  void restart(uint64_t id);

  /// Forgets all samples, and prefixes.
  void clear();

  /// What blocks hold is worth nothing to samples that start: the weights change. Those that run keep theirs.
  void forget_prefixes();

  bool idle() const { return running_.empty() && waiting_.empty() && parked_.empty(); }
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size() + parked_.size()); }
  StepWork& work() { return work_; }
  const StepWork& work() const { return work_; }
  const BlockPool& pool() const { return pool_; }
  int64_t take_peak() { return pool_.take_peak(); }

 private:
  using Owned = std::unique_ptr<Sample>;

  int64_t blocks_for(int64_t tokens) const { return (tokens + limits_.kv_block_size - 1) / limits_.kv_block_size; }
  bool full() const { return static_cast<int64_t>(running_.size()) >= limits_.max_running_samples; }
  int64_t missing_blocks(const Sample& sample) const;
  bool has_room(const Sample& sample) const;
  void admit();
  bool displace_paused(const Sample& older);
  void share_out();
  void draft();
  void draft(Sample& sample, int64_t most);
  bool may_draft(int64_t decoding, int64_t computed) const;
  void take_blocks();
  void number_rows();
  void own_last_block(Sample& sample);
  void give_up_youngest();
  void give_up(std::vector<Owned>::iterator running);
  void wait(Owned sample);
  void unpark(const Sample& sample);
  Sample& known(uint64_t id) const;
  void reset(Sample& sample);
  void inherit();

  // What samples of the same prefix do for each other (prefix_sharing.cpp).
  void start(Sample& sample);
  void catch_up(Sample& sample);
  void match(Sample& sample);
  void find_leader(Sample& sample);
  int64_t common_prefix(const Sample& a, const Sample& b) const;
  void index_prompt(Sample& sample);
  void fork(const Sample& leader, Sample& follower);
  const Sample* running_of_age(uint64_t age) const;

  GenerationLimits limits_;
  BlockPool pool_;
  PrefixIndex index_;
  DraftAgreement agreement_;    // with the model that guesses
  std::vector<Owned> running_;  // by age
  std::deque<Owned> waiting_;   // by age, those that were preempted among them
  std::vector<Owned> parked_;   // preempted, and paused or held
  std::vector<BlockCopy> copies_;
  uint64_t last_age_ = 0;
  int64_t preempted_ = 0;  // since the last plan() ended
  StepWork work_;
};

}  // namespace sluice::models
