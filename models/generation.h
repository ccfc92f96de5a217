#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "models/config.h"
#include "models/decoder.h"
#include "models/kv_cache.h"
#include "models/sampler.h"
#include "models/weights.h"

namespace sluice::models {

struct GenerationOptions {
  SamplingOptions sampling;
  std::vector<int64_t> end_of_sequence;  // ids that end a sample; empty: every sample runs to its length
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
};

enum class FinishReason : uint8_t { kEndOfSequence, kLength };

struct SampleResult {
  uint64_t id = 0;
  std::vector<int64_t> tokens;  // the sampled ones, with the end-of-sequence id when that was sampled
  std::vector<float> logprobs;  // of each sampled token, see SampledToken
  FinishReason finish = FinishReason::kLength;
};

/// What one step did.
struct StepWork {
  int64_t prompt_tokens = 0;   // read
  int64_t sampled_tokens = 0;  // one for each sample that got a token
};

/// Why samples of this model must not be longer than config.steady_positions(), with the keys of config.json; empty where they
/// may be as long as max_positions.
std::string limit_of_rotary_scaling(const ModelConfig& config);

/// Continuous batching: samples run side by side, one token a step each; when one ends, the next waiting sample takes its place,
/// and its prompt is read in chunks beside the tokens of the others. Cooperative: nothing happens outside step(). Not
/// thread-safe.
///
/// A sample's tokens and log-probabilities are bit-identical whatever it runs beside, whatever the limits are, and for any number
/// of threads. They depend on its prompt, its stream and the weights, which must be the same from its first step to its last.
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

  /// One cooperative step; returns the samples that ended in it. Throws UserError naming the sample when its logits are not
  /// finite; clear() is then the only thing to do.
  std::vector<SampleResult> step(const Weights& weights);

  /// What the running sample `id` has sampled so far; empty when no sample of that id runs. Valid until the next call.
  std::span<const int64_t> sampled(uint64_t id) const;

  /// Abandons everything, waiting and running, and frees the blocks.
  void clear();

  bool idle() const { return running_.empty() && waiting_.empty(); }
  int64_t running() const { return static_cast<int64_t>(running_.size()); }
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }
  const StepWork& last_step() const { return last_step_; }
  const KvCache& kv() const { return cache_; }

  /// The most bytes of the KV cache that were in use at a time since the last call.
  int64_t take_kv_peak_bytes() { return cache_.take_peak_bytes(); }

 private:
  struct Sample {
    SampleRequest request;
    SampleResult result;
    std::vector<int32_t> blocks;
    int64_t cached = 0;     // tokens with keys and values in the blocks
    int64_t scheduled = 0;  // tokens of the step at hand
    int64_t promised_blocks = 0;

    bool decoding() const { return cached >= static_cast<int64_t>(request.prompt.size()); }
    int64_t prompt_left() const { return static_cast<int64_t>(request.prompt.size()) - cached; }
  };

  void admit();
  void schedule();
  std::span<const float> forward(const Weights& weights);
  void sample_next(std::span<const float> logits);
  bool ended(Sample& sample) const;
  std::vector<SampleResult> collect();
  void check_length(const std::string& name, const SampleRequest& request) const;
  int64_t worst_blocks(const SampleRequest& request) const;

  ModelConfig config_;
  GenerationOptions options_;
  GenerationLimits limits_;
  KvCache cache_;
  Decoder decoder_;
  Sampler sampler_;
  std::deque<SampleRequest> waiting_;
  std::vector<Sample> running_;
  std::vector<DecodeSequence> batch_;  // scratch of forward()
  int64_t promised_blocks_ = 0;        // worst cases of all running samples
  StepWork last_step_;
};

}  // namespace sluice::models
