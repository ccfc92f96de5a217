#pragma once

#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "nodes/scorers/http/http_client.h"
#include "nodes/scorers/http/http_retries.h"

namespace sluice::nodes {

/// What scorers have that ask servers; their parameters derive from it:
///
///   urls = ["http://one:5000/score", "http://two:5000/score"]   # requests go to them in turn
///   parallel = 8                      # requests under way at once
///   timeout_seconds = 180.0           # for one attempt
///   retries = 5                       # attempts after the first, at the next of the urls
///   retry_seconds = 1.0               # pause before the first retry; doubles each time, up to 30 s
///   token_variable = "REWARD_TOKEN"   # environment variable with a bearer token; the token itself is written nowhere
struct HttpParams {
  std::vector<std::string> urls;
  int64_t parallel = 8;
  double timeout_seconds = 180;
  int64_t retries = 5;
  double retry_seconds = 1;
  std::string token_variable;
};

/// Reports what is wrong with them.
void check_http(const HttpParams& params, engine::Findings& findings);

/// With the token from the environment. Throws UserError naming the variable where it is not there.
HttpClientOptions http_options(const HttpParams& params, const std::string& node);

/// Declares the parameters, and the metric reward/NODE/retries.
template <class P>
void describe_http(engine::Contract<P>& c) {
  c.param("urls", &P::urls).required().doc("of the servers; requests go to them in turn");
  c.param("parallel", &P::parallel).between(1, 1024).harmless().doc("requests under way at once");
  c.param("timeout_seconds", &P::timeout_seconds).above(0).harmless().unit("seconds").doc("for one attempt");
  c.param("retries", &P::retries)
      .between(0, 100)
      .harmless()
      .doc("attempts after the first, at the next of the urls: without connection, 408, 429, 5xx");
  c.param("retry_seconds", &P::retry_seconds)
      .at_least(0)
      .harmless()
      .unit("seconds")
      .doc("pause before the first retry; doubles each time, up to 30 s; the only server may ask for more with Retry-After");
  c.param("token_variable", &P::token_variable)
      .harmless()
      .doc("environment variable with a bearer token that is sent; empty: none");
  c.metric("reward/NODE/retries", engine::Metric::kSum, "attempts after the first of requests to servers, where there were any");
  c.check([](const P& params, engine::Findings& findings) { check_http(params, findings); });
}

}  // namespace sluice::nodes
