#include "nodes/scorers/http/trusted_certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/process/subprocess.h"
#include "nodes/scorers/http/http_client.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::trusted_certificates_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Made for these tests: 127.0.0.1 vouches for itself until 2120.
constexpr const char* kKey = R"(-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgW0MpYqiIiIrlFcJX
vsFQhWTcp2fXiuPyxAsf7wY+kfChRANCAATjck8EiwWMCQz2ee+Xws+IO7BFTEA5
schlyT8r/EAxKbmYGB8NPB3C0M6Ix+2a/NejCJGhWxDDWRRrtrGSKynM
-----END PRIVATE KEY-----
)";
constexpr const char* kCertificate = R"(-----BEGIN CERTIFICATE-----
MIIBYTCCAQagAwIBAgIBATAKBggqhkjOPQQDAjAWMRQwEgYDVQQDDAtzbHVpY2Ut
dGVzdDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFjEUMBIGA1UE
AwwLc2x1aWNlLXRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATjck8EiwWM
CQz2ee+Xws+IO7BFTEA5schlyT8r/EAxKbmYGB8NPB3C0M6Ix+2a/NejCJGhWxDD
WRRrtrGSKynMo0MwQTAPBgNVHREECDAGhwR/AAABMA8GA1UdEwEB/wQFMAMBAf8w
HQYDVR0OBBYEFBMpa7PX6i69bMYJA6lDAlNLEFvsMAoGCCqGSM49BAMCA0kAMEYC
IQDQtEYIwuLmp/48y39GFu65ZNKMuBO9nrayb6dIlztaLQIhAI6skag3L81fEpLl
6akdQ7HA1L+2345UOa4Tx2RHQuAV
-----END CERTIFICATE-----
)";

constexpr const char* kServer = R"(
import http.server, ssl
class Answers(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("certificate.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
)";

constexpr const char* kVariables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"};

class TrustedCertificatesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) {
      const char* value = std::getenv(name);
      before_.push_back(value == nullptr ? "" : value);
      ::unsetenv(name);
    }
    folder_.write("key.pem", kKey);
    folder_.write("certificate.pem", kCertificate);
    folder_.write("server.py", kServer);
  }

  void TearDown() override {
    for (size_t i = 0; i < before_.size(); ++i) {
      if (before_[i].empty())
        ::unsetenv(kVariables[i]);
      else
        ::setenv(kVariables[i], before_[i].c_str(), 1);
    }
  }

  // A client that begins now; the body, or why there is none.
  std::string asked() {
    if (!server_) start();
    HttpClient client({.urls = {"https://127.0.0.1:" + port_ + "/"}, .retries = 0});
    std::string said;
    const std::string body = "{}";
    client.post(
        {&body, 1},
        [&](size_t, const HttpReply& reply) {
          said = reply.failure + reply.body;
          return true;
        },
        [](const HttpRetry&) {});
    return said;
  }

  std::string certificate() const { return (folder_.path() / "certificate.pem").string(); }

  const TemporaryFolder folder_;

 private:
  // Waits for: its port. Ends when: it says it, or has ended.
  void start() {
    server_ = std::make_unique<Subprocess>(SubprocessOptions{
        .arguments = {"python3", "server.py"}, .environment = {}, .folder = folder_.path(), .inherited = {}, .user = {}});
    Subprocess* const only = server_.get();
    std::optional<std::string> line;
    while (!(line = server_->take_line()) && !server_->ended())
      Subprocess::exchange({&only, 1}, Subprocess::Clock::now() + std::chrono::seconds(1));
    ASSERT_TRUE(line) << server_->errors();
    port_ = *line;
  }

  std::vector<std::string> before_;
  std::unique_ptr<Subprocess> server_;
  std::string port_;
};

TEST_F(TrustedCertificatesTest, NobodyVouchesForAServerThatTheSystemDoesNotKnow) {
  EXPECT_THAT(asked(), AllOf(HasSubstr("SSL certificate problem: self"), HasSubstr("trusted is whom the system trusts, unless"),
                             HasSubstr("CURL_CA_BUNDLE or SSL_CERT_FILE names a file")));
}

TEST_F(TrustedCertificatesTest, TheVariablesOfCurlNameOthers) {
  ::setenv("SSL_CERT_FILE", certificate().c_str(), 1);
  EXPECT_EQ(asked(), "ok");
  ::setenv("CURL_CA_BUNDLE", "/no/such.pem", 1);  // comes first
  EXPECT_THAT(asked(), AllOf(HasSubstr("/no/such.pem"), HasSubstr("the file of CURL_CA_BUNDLE")));
  ::setenv("CURL_CA_BUNDLE", certificate().c_str(), 1);
  ::setenv("SSL_CERT_FILE", "/no/such.pem", 1);
  EXPECT_EQ(asked(), "ok");
}

TEST_F(TrustedCertificatesTest, AFolderMayStandBesideAFile) {
  ::setenv("SSL_CERT_DIR", "/some/folder", 1);
  ::setenv("SSL_CERT_FILE", "", 1);
  const TrustedCertificates trusted = TrustedCertificates::of_environment();
  EXPECT_EQ(trusted.folder, "/some/folder");
  EXPECT_EQ(trusted.file, "");
}

}  // namespace
}  // namespace sluice::nodes::trusted_certificates_test
