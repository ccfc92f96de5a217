#pragma once

#include <string>
#include <vector>

#include "base/numbers/random.h"

namespace sluice::fuzz {

/// Makes damaged inputs out of good ones: flipped bits, cuts, repeats, deep nesting, huge numbers, words of the format in wrong
/// places, halves of two inputs. The same seed and number give the same input.
class Mutator {
 public:
  /// `corpus`: good inputs, at least one. `words`: what the format is made of; may be empty.
  Mutator(std::vector<std::string> corpus, std::vector<std::string> words, uint64_t seed);

  std::string input(uint64_t number) const;

 private:
  void mutate(std::string& text, RandomStream& random) const;

  std::vector<std::string> corpus_;
  std::vector<std::string> words_;
  uint64_t seed_;
};

}  // namespace sluice::fuzz
