#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "models/memory/grown_buffer.h"

namespace sluice::models {

/// How the next token is drawn: penalties change logits, the temperature divides them, top_k, top_p and min_p leave only the
/// likeliest.
struct SamplingOptions {
  double temperature = 1.0;  // >= 0; 0 takes the likeliest token
  int64_t top_k = 0;         // keep the k likeliest; 0 keeps all
  double top_p = 1.0;        // then keep the fewest likeliest whose share of what is left reaches top_p; 1 keeps all
  double min_p = 0.0;        // of those keep tokens at least min_p times as likely as the likeliest; 0 keeps all

  /// Of a token that occurs in the prompt or behind it: a positive logit is divided by it, a negative one multiplied (Keskar et
  /// al. 2019, "CTRL", section 4.1). Above 0; 1 changes nothing.
  double repetition_penalty = 1.0;

  /// Taken off the logit of a token that occurs behind the prompt: once, and once for each time that it does.
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;

  bool penalizes() const { return repetition_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0; }
  bool truncates() const { return top_k != 0 || top_p != 1 || min_p != 0; }
};

struct SampledToken {
  int64_t id = 0;

  /// Natural log of the token's probability in softmax(logits / temperature) over the whole vocabulary, the logits as the model
  /// gives them: the temperature counts; penalties, top_k, top_p and min_p do not. That is what the training side computes for
  /// the same token at the same temperature. With temperature 0 it is the log-probability at temperature 1.
  float logprob = 0;
};

/// One row of logits to draw from, and what the penalties count: token ids in the vocabulary.
struct SamplingRow {
  uint64_t id = 0;                            // of the sample, for messages
  std::span<const float> logits;              // [V]
  RandomStream* stream = nullptr;             // of this row alone; may be null when the draw is greedy
  bool greedy = false;                        // the likeliest token, whatever the options say
  std::span<const int64_t> prompt, response;  // what it follows; both may be empty where nothing penalizes()
};

/// Draws token ids from rows of logits. Equal logits are ordered by id, lowest first; sums are taken in double. A draw depends on
/// nothing but its row and its stream, of which it takes one uniform() (none when greedy). Not thread-safe.
///
/// Owns scratch memory for each thread, which grows to the vocabulary; allocates nothing after that.
class Sampler {
 public:
  /// Throws UserError naming the option that is out of range.
  explicit Sampler(const SamplingOptions& options);

  /// A token for each row, split over ATen's threads. Throws UserError "sample ID: logits are not finite" for the first row that
  /// holds a NaN or an infinity: the model has diverged.
  void sample(std::span<const SamplingRow> rows, std::span<SampledToken> tokens);

  /// One row that follows nothing.
  SampledToken sample(std::span<const float> logits, RandomStream& stream);

 private:
  struct Scratch {
    GrownBuffer<float> penalized, weights;  // [V]
    GrownBuffer<double> totals;             // of runs of weights
    GrownBuffer<int32_t> ids;               // [V]
    std::vector<int32_t> counts;            // [V], zero between rows
  };

  struct Softened {  // a row as weights of a softmax
    std::span<const float> logits;
    float top = 0;     // the largest logit
    double total = 0;  // of all weights; those of each run are in the scratch
  };

  SampledToken draw(const SamplingRow& row, Scratch& scratch) const;
  std::span<const float> penalized(const SamplingRow& row, Scratch& scratch) const;
  Softened soften(std::span<const float> logits, float top, Scratch& scratch) const;
  int64_t draw_id(const Softened& row, bool greedy, RandomStream* stream, Scratch& scratch) const;
  int64_t draw_from_all(const Softened& row, Scratch& scratch, double uniform) const;
  int64_t draw_from_likeliest(const Softened& row, Scratch& scratch, double uniform) const;
  double temperature() const { return options_.temperature == 0 ? 1.0 : options_.temperature; }
  float scale() const { return static_cast<float>(1.0 / temperature()); }

  SamplingOptions options_;
  std::vector<Scratch> scratch_;  // one for each thread
};

}  // namespace sluice::models
