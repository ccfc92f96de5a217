#include "text/tokenizer/growth.h"

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::text {

void check_growth(size_t before, size_t size, const std::string& where) {
  constexpr size_t kMostTimes = 32;  // one character may decompose into 33 bytes
  constexpr size_t kMostMore = 256;
  if (size <= kMostTimes * before + kMostMore) return;
  throw UserError(where + ": this makes a text of " + human_bytes(before) + " longer than " +
                  human_bytes(kMostTimes * before + kMostMore));
}

}  // namespace sluice::text
