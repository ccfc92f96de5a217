#pragma once

#include <cstddef>
#include <string>

#include "nodes/scorers/http/trusted_certificates.h"

namespace sluice::nodes {

inline constexpr size_t kMostHttpBody = 64 << 20;

/// How a request to a server ended.
struct HttpEnd {
  int code = 0;            // of libcurl; 0: there is an answer
  std::string error;       // what it says beside that
  long status = 0;         // of the answer
  std::string body;        // likewise
  std::string leads_to;    // where a redirection does
  long long wanted = 0;    // seconds to wait, as the server asks for it
  bool too_long = false;   // more than kMostHttpBody
  bool has_token = false;  // a token was sent
};

bool is_answer(const HttpEnd& end);

/// Of one that is no answer: another attempt may have one.
bool may_pass(const HttpEnd& end);

/// Why `url`, which may have secrets, gave no answer: "http://host:5000/score answered 503: no workers". Without them, on one
/// line, and without anything that a terminal obeys.
std::string failure_text(const HttpEnd& end, const std::string& url, const TrustedCertificates& trusted);

}  // namespace sluice::nodes
