#include "nodes/scorers/http/http_failure.h"

#include <curl/curl.h>

#include <algorithm>
#include <string_view>

#include "base/text/printable.h"
#include "base/text/strings.h"
#include "base/text/url_passwords.h"

namespace sluice::nodes {
namespace {

bool is_about_certificates(int code) { return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE; }

// The first bytes of a body, on one line.
std::string beginning(const std::string& body) {
  constexpr size_t kMost = 200;
  std::string text(trim(std::string_view(body).substr(0, kMost)));
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text.empty() ? "an empty body" : printable(text) + (body.size() > kMost ? "..." : "");
}

std::string about_token(const HttpEnd& end) {
  if (end.status != 401 && end.status != 403) return {};
  return end.has_token ? "; the token that was sent is that of token_variable"
                       : "; no token was sent: token_variable names the environment variable that has it";
}

std::string what_it_answered(const HttpEnd& end) {
  const std::string status = " answered " + std::to_string(end.status) + ": ";
  if (end.leads_to.empty()) return status + beginning(end.body) + about_token(end);
  return status + "redirections are not followed, and this one leads to " + printable(shown_url(end.leads_to));
}

}  // namespace

bool is_answer(const HttpEnd& end) { return end.code == CURLE_OK && end.status >= 200 && end.status < 300; }

bool may_pass(const HttpEnd& end) {
  if (end.code == CURLE_OK) return end.status == 408 || end.status == 429 || end.status >= 500;
  return !is_about_certificates(end.code) && end.code != CURLE_URL_MALFORMAT && end.code != CURLE_WRITE_ERROR;
}

std::string failure_text(const HttpEnd& end, const std::string& url, const TrustedCertificates& trusted) {
  const std::string who = printable(shown_url(url));
  if (end.too_long) return who + " answered more than " + human_bytes(kMostHttpBody);
  if (end.code == CURLE_OK) return who + what_it_answered(end);
  const std::string why = end.error.empty() ? curl_easy_strerror(static_cast<CURLcode>(end.code)) : printable(end.error);
  return who + ": " + why + (is_about_certificates(end.code) ? "; " + trusted.text() : "");
}

}  // namespace sluice::nodes
