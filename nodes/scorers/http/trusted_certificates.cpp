#include "nodes/scorers/http/trusted_certificates.h"

#include <cstdlib>

namespace sluice::nodes {
namespace {

// Empty: it is not set, or to nothing.
std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

TrustedCertificates TrustedCertificates::of_environment() {
  if (std::string bundle = variable("CURL_CA_BUNDLE"); !bundle.empty())
    return {.file = std::move(bundle), .folder = {}, .source = "CURL_CA_BUNDLE"};
  TrustedCertificates trusted{.file = variable("SSL_CERT_FILE"), .folder = variable("SSL_CERT_DIR"), .source = {}};
  if (!trusted.file.empty()) trusted.source = "SSL_CERT_FILE";
  return trusted;
}

std::string TrustedCertificates::text() const {
  if (source.empty())
    return "trusted is whom the system trusts, unless CURL_CA_BUNDLE or SSL_CERT_FILE names a file of certificates";
  return "trusted is who stands in " + file + ", the file of " + source;
}

}  // namespace sluice::nodes
