#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::models {

/// What a sample may say next is guessed from its own text, to be computed beside its next token (speculative sampling): what the
/// model samples where it was guessed comes several tokens a step. Nothing else of what is sampled changes, to the bit.

/// How much is guessed; no tokens: nothing.
struct DraftLimits {
  int64_t tokens = 0;   // of a sample in a step, at most
  int64_t samples = 0;  // nothing where more of them decode, or a prompt is read; 0: whatever runs beside
};

/// The tokens that stood behind the last place where the text of prompt and response says its last tokens, three or two: at most
/// `most`. Where it repeats itself they go on in what was guessed. Appended to `drafts`, which was empty. Source: Saxena 2023, "Prompt
/// lookup decoding".
void draft_by_ngram(std::span<const int64_t> prompt, std::span<const int64_t> response, int64_t most,
                    std::vector<int64_t>& drafts);

/// How much is worth guessing of one sample, by what came of it: twice as much when all of it was right, and nothing for a while when
/// less than half of it was, since a row that is computed for nothing costs others time. A value.
class DraftLength {
 public:
  /// Of the next step, at most `most`.
  int64_t next(int64_t most);

  /// Of so many that were guessed, the first so many were sampled.
  void learn(int64_t guessed, int64_t right);

 private:
  static constexpr int64_t kFirst = 4;

  int64_t length_ = kFirst;
  int64_t poor_in_a_row_ = 0;  // guesses
  int64_t rest_ = 0;           // steps
};

}  // namespace sluice::models
