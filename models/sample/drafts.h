#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::models {

/// What a sample may say next is guessed, from its own text or by another model (draft_model.h), to be computed beside its next
/// token (speculative sampling): what the model samples where it was guessed comes several tokens a step. Nothing else of what is
/// sampled changes, to the bit.

/// How much is guessed; no tokens: nothing.
struct DraftLimits {
  int64_t tokens = 0;     // of a sample in a step, at most
  int64_t samples = 0;    // nothing where more of them decode, or a prompt is read; 0: whatever runs beside
  bool by_model = false;  // another model guesses; false: the texts say it
};

/// The tokens that stood after the last place where the text of prompt and response says its last tokens, three or two: at most
/// `most`. Where it repeats itself they go on in what was guessed. Appended to `drafts`, which was empty. Source: Saxena 2023,
/// "Prompt lookup decoding".
void draft_by_ngram(std::span<const int64_t> prompt, std::span<const int64_t> response, int64_t most,
                    std::vector<int64_t>& drafts);

/// How much is worth guessing of one sample, by what came of it: twice as much when all of it was right, and nothing for a while
/// when less than half of it was, since a row that is computed for nothing costs others time. A value.
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

/// How much is worth guessing where another model guesses, the same of all samples: as many tokens as give most for the time that
/// a step takes with them. How likely a guess is right is taken from what came of those before, of late more than of long ago: a
/// policy moves away from who guesses for it. Where not even one is worth it, one is tried now and then. A value.
class DraftAgreement {
 public:
  /// What a guess costs beside its row, as a part of what a step costs without it; and how many rows double the time of a step.
  void set_costs(double guess, double doubling_rows);

  /// Of each of so many samples in the next step, at most `most`.
  int64_t next(int64_t most, int64_t samples);

  /// As DraftLength has it, of one sample.
  void learn(int64_t guessed, int64_t right);

  double rate() const { return right_ / judged_; }  // of guesses after right ones, those that are right

 private:
  static constexpr int64_t kFirstRest = 32, kLongestRest = 1024;

  double guess_cost_ = 0.1, doubling_rows_ = 12;
  double right_ = 3.8, judged_ = 4.0;  // sums in which the latest weigh most, with what is taken for granted at first
  int64_t rest_ = 0;                   // steps without a guess that are left
  int64_t next_rest_ = kFirstRest;
};

}  // namespace sluice::models
