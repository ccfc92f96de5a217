#include "base/text/url_passwords.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr std::string_view kBegin = "://", kHidden = "***";

// A password with a slash that is not written as %2F makes "user:secr" look like a host and its port.
bool is_host(std::string_view text) {
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && !text.ends_with(']');  // of "[::1]" the colons begin none
  return !has_port || text.find_first_not_of("0123456789", colon + 1) == std::string_view::npos;
}

}  // namespace

std::string without_passwords(std::string_view text) {
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

std::string shown_url(std::string_view url) {
  const size_t scheme = url.find(kBegin), begin = scheme == std::string_view::npos ? 0 : scheme + kBegin.size();
  const std::string_view authority = url.substr(begin, std::min(url.find_first_of("/?#", begin), url.size()) - begin);
  const size_t host = authority.rfind('@') + 1;  // 0: nothing is in front of it
  const bool is_url = begin > 0 && is_host(authority.substr(host));
  const size_t hidden = is_url ? host : url.substr(begin).rfind('@') + 1;  // characters
  const std::string_view rest = url.substr(begin + (hidden > 0 ? hidden - 1 : 0));
  const size_t query = rest.find('?');
  return std::string(url.substr(0, begin)) + std::string(hidden > 0 ? kHidden : "") + std::string(rest.substr(0, query)) +
         (query == std::string_view::npos ? "" : "?...");
}

}  // namespace sluice
