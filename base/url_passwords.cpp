#include "base/url_passwords.h"

#include <algorithm>

namespace sluice {

std::string without_passwords(std::string_view text) {
  constexpr std::string_view kBegin = "://", kHidden = "***";
  std::string shown;
  size_t done = 0;
  for (size_t found = text.find(kBegin); found != std::string_view::npos; found = text.find(kBegin, done)) {
    const size_t begin = found + kBegin.size(), end = std::min(text.find_first_of("/?# \t\r\n", begin), text.size());
    const size_t at = text.substr(begin, end - begin).rfind('@');
    shown += text.substr(done, begin - done);
    if (at != std::string_view::npos) shown += kHidden;
    done = at == std::string_view::npos ? begin : begin + at;
  }
  shown += text.substr(done);
  return shown;
}

}  // namespace sluice
