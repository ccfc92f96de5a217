#pragma once

#include <cstdint>
#include <string>

namespace sluice::comm {

/// A rank without which a run cannot go on, and how it came to that.
struct RankLoss {
  enum class How { kSilent, kClosed, kFailed };

  int rank = 0;
  std::string host;
  int64_t pid = 0;
  How how = How::kSilent;
  double seconds = 0;  // of kSilent
  std::string why;     // of kFailed
  std::string doing;   // what it did last, as it said: "in 'generate', iteration 7"
};

/// One sentence: "rank 3 (host n2, pid 4711) gave no sign for 10 s; it was last in 'generate', iteration 7".
std::string text_of(const RankLoss& loss);

/// For the store. loss_from() throws InternalError on what bytes_of() does not write.
std::string bytes_of(const RankLoss& loss);
RankLoss loss_from(const std::string& bytes);

}  // namespace sluice::comm
