#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "models/config/config.h"
#include "models/generation/block_pool.h"
#include "models/generation/decoder.h"
#include "models/generation/kv_cache.h"
#include "models/generation/sampler.h"
#include "models/generation/packed_weights.h"

namespace sluice::models {

struct GenerationOptions {
  SamplingOptions sampling;
  std::vector<int64_t> end_of_sequence;  // ids that end a sample; empty: every sample runs to its length
  Precision precision = Precision::kFloat32;  // of the weights that steps get, and of the KV cache
};

struct GenerationLimits {
  int64_t max_running_samples = 256;  // samples that hold blocks of the KV cache at a time
  int64_t max_step_tokens = 2048;     // tokens of one step, decoded and prompt together; at least max_running_samples
  int64_t kv_block_size = 16;         // tokens, a multiple of 16
  int64_t kv_blocks = 0;              // of the KV cache
};

struct SampleRequest {
  uint64_t id = 0;              // the caller's; not interpreted
  std::vector<int64_t> prompt;  // at least one token
  int64_t max_new_tokens = 0;   // at least 1
  RandomStream stream;          // of this sample alone
  bool greedy = false;          // the likeliest token each time, whatever the options say
};

enum class FinishReason : uint8_t { kEndOfSequence, kLength, kStopped };

/// A run of tokens, [begin, end).
struct TokenRun {
  int64_t begin = 0, end = 0;
};

struct SampleResult {
  uint64_t id = 0;
  std::vector<int64_t> tokens;  // all behind the prompt, with the end-of-sequence id when that was sampled
  std::vector<float> logprobs;  // of each sampled token, see SampledToken
  std::vector<TokenRun> given;  // of `tokens`: those that resume() brought; the others were sampled
  FinishReason finish = FinishReason::kLength;
};

/// How a sample goes on behind the token that it sampled last.
enum class Next : uint8_t {
  kGoesOn,  // unless that token is an end of sequence or the last that there is room for
  kEnds,    // as kStopped
  kPauses,  // until resume() or end()
};

/// Asked for every token that is sampled: the sample's id, and its tokens behind the prompt, the new one last. Must not call the
/// engine.
using TokenJudge = std::function<Next(uint64_t id, std::span<const int64_t> tokens)>;

/// What one step did.
struct StepWork {
  int64_t prompt_tokens = 0;   // read; behind a pause the token before it is read with what was given
  int64_t sampled_tokens = 0;  // one for each sample that got a token
};

/// Why samples of this model must not be longer than config.steady_positions(), with the keys of config.json; empty where they
/// may be as long as max_positions.
std::string limit_of_rotary_scaling(const ModelConfig& config);

/// Continuous batching: samples run side by side, one token a step each; when one ends, the next waiting sample takes its place,
/// and its prompt is read in chunks beside the tokens of the others. Cooperative: nothing happens outside step(). Not
/// thread-safe.
///
/// A sample's tokens and log-probabilities are bit-identical whatever it runs beside, whatever the limits are, however long it
/// paused, and for any number of threads. They depend on its prompt, on what it was given, its stream and the weights, which must
/// be the same from its first step to its last.
///
/// A waiting sample starts, in the order of submission, once a place and the KV blocks of its worst case are free, so the cache
/// cannot run out underway.
class GenerationEngine {
 public:
  /// Throws UserError when an option or a limit is out of range.
  GenerationEngine(const ModelConfig& config, const GenerationOptions& options, const GenerationLimits& limits);

  /// Throws UserError when the sample can never run: an empty prompt, ids outside the vocabulary, nothing to sample, longer than
  /// config.steady_positions() or the whole KV cache.
  void submit(SampleRequest request);

  /// Who decides, from the next step on, where samples end or pause; none: an end of sequence and the length end them.
  void set_judge(TokenJudge judge) { judge_ = std::move(judge); }

  /// One cooperative step; returns the samples that ended in it. Throws UserError naming the sample when its logits are not
  /// finite; clear() is then the only thing to do.
  std::vector<SampleResult> step(const PackedWeights& weights);

  /// Lets a paused sample go on behind `tokens` more, which it did not sample: they are read as a prompt is. At least one of its
  /// max_new_tokens must be left behind them. Throws UserError for ids outside the vocabulary. A paused sample keeps its place
  /// and its KV blocks, and costs a step nothing.
  void resume(uint64_t id, std::span<const int64_t> tokens);

  /// Ends a paused sample.
  SampleResult end(uint64_t id);

  /// What the running sample `id` has behind its prompt so far; empty when no sample of that id runs. Valid until the next call.
  std::span<const int64_t> sampled(uint64_t id) const;

  /// Abandons everything, waiting and running, and frees the blocks.
  void clear();

  bool idle() const { return running_.empty() && waiting_.empty(); }
  int64_t running() const { return static_cast<int64_t>(running_.size()); }
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }
  const StepWork& last_step() const { return last_step_; }
  const KvCache& kv() const { return cache_; }
  const BlockPool& kv_blocks() const { return pool_; }

  /// The most bytes of the KV cache that were in use at a time since the last call.
  int64_t take_kv_peak_bytes() { return pool_.take_peak() * cache_.bytes_per_block(); }

 private:
  struct Sample {
    SampleRequest request;
    SampleResult result;
    std::vector<int64_t> tokens;  // the prompt and all behind it
    int64_t given = 0;            // of them, up to the last that was not sampled
    std::vector<int32_t> blocks;
    int64_t cached = 0;     // tokens with keys and values in the blocks
    int64_t scheduled = 0;  // tokens of the step at hand
    int64_t promised_blocks = 0;
    bool sampled = false;  // it got a token in the step at hand
    bool paused = false;

    bool decoding() const { return cached >= given; }
    int64_t given_left() const { return given - cached; }
    std::span<const int64_t> new_tokens() const { return std::span(tokens).subspan(request.prompt.size()); }
  };

  void admit();
  void schedule();
  std::span<const float> forward(const PackedWeights& weights);
  void sample_next(std::span<const float> logits);
  bool ended(Sample& sample);
  std::vector<SampleResult> collect();
  SampleResult take(Sample& sample);
  void forget_taken();
  Sample& paused_sample(uint64_t id);
  void check_ids(const std::string& name, std::span<const int64_t> ids) const;
  void check_length(const std::string& name, const SampleRequest& request) const;
  int64_t worst_blocks(const SampleRequest& request) const;

  ModelConfig config_;
  GenerationOptions options_;
  GenerationLimits limits_;
  KvCache cache_;
  BlockPool pool_;
  Decoder decoder_;
  Sampler sampler_;
  TokenJudge judge_;
  std::deque<SampleRequest> waiting_;
  std::vector<Sample> running_;
  std::vector<DecodeSequence> batch_;  // scratch of forward()
  std::vector<SamplingRow> rows_;      // scratch of sample_next(), as is the next
  std::vector<SampledToken> drawn_;
  int64_t promised_blocks_ = 0;        // worst cases of all running samples
  StepWork last_step_;
};

}  // namespace sluice::models
