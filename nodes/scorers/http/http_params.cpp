#include "nodes/scorers/http/http_params.h"

#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "nodes/scorers/http/http_url.h"
#include "nodes/scorers/milliseconds.h"

namespace sluice::nodes {
namespace {

std::string token(const std::string& variable, const std::string& node) {
  if (variable.empty()) return {};
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr || *value == '\0') {
    throw UserError("node '" + node + "': the environment has no variable " + variable, "set it, or leave token_variable out");
  }
  if (std::string_view(value).find_first_of("\r\n") != std::string_view::npos) {
    throw UserError("node '" + node + "': the token in " + variable + " has more than one line");
  }
  return value;
}

}  // namespace

void check_http(const HttpParams& params, engine::Findings& findings) {
  if (params.urls.empty()) findings.error("urls", "urls names no server");
  for (const std::string& url : params.urls) {
    const std::string fault = fault_of_url(url);
    if (!fault.empty()) findings.error("urls", fault);
  }
  if (params.retries == 0 && findings.changed("retry_seconds")) {
    findings.without_effect("retry_seconds", "retry_seconds has no effect with retries = 0");
  }
}

HttpClientOptions http_options(const HttpParams& params, const std::string& node) {
  return {.urls = params.urls,
          .bearer_token = token(params.token_variable, node),
          .timeout = milliseconds_of(params.timeout_seconds),
          .retries = static_cast<size_t>(params.retries),
          .first_pause = milliseconds_of(params.retry_seconds),
          .parallel = static_cast<size_t>(params.parallel)};
}

}  // namespace sluice::nodes
