#include "nodes/scorers/http/http_url.h"

#include <curl/curl.h>

#include <memory>

#include "base/text/strings.h"
#include "base/text/url_passwords.h"

namespace sluice::nodes {
namespace {

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part_of(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

std::string fault_of_url(const std::string& url) {
  const std::unique_ptr<CURLU, UrlDeleter> parsed(curl_url());
  const size_t slashes = url.find("://");
  const bool has_no_host =
      slashes != std::string::npos && url.find(":///") == slashes;  // curl would take the first folder for it
  const std::string shown = sluice::quoted(shown_url(url));
  if (has_no_host || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK)
    return shown + " is not a url";
  const std::string scheme = part_of(parsed.get(), CURLUPART_SCHEME);
  return scheme == "http" || scheme == "https" ? "" : shown + " does not begin with http:// or https://";
}

bool is_this_machine(const std::string& url) {
  const std::unique_ptr<CURLU, UrlDeleter> parsed(curl_url());
  if (curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return false;
  const std::string host = small_letters(part_of(parsed.get(), CURLUPART_HOST));
  return host == "localhost" || host.starts_with("127.") || host == "[::1]";
}

}  // namespace sluice::nodes
