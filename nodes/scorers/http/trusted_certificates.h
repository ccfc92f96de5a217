#pragma once

#include <string>

namespace sluice::nodes {

/// Who may vouch for servers over HTTPS. As for the program curl: who stands in the file CURL_CA_BUNDLE; without it who stands in
/// the file SSL_CERT_FILE or the folder SSL_CERT_DIR. libcurl itself heeds none of these variables. Without any: whom the system
/// trusts.
struct TrustedCertificates {
  std::string file;    // empty: the system's
  std::string folder;  // likewise
  std::string source;  // the variable that names the file; empty: none does

  static TrustedCertificates of_environment();

  /// "trusted is who stands in /etc/reward.pem, the file of SSL_CERT_FILE": the end of a message about a server that nobody
  /// vouches for.
  std::string text() const;
};

}  // namespace sluice::nodes
