#include "base/url_passwords.h"

#include <gtest/gtest.h>

namespace sluice::url_passwords_test {
namespace {

TEST(UrlPasswords, AreNotShown) {
  EXPECT_EQ(without_passwords("http://user:s3cret@host/x"), "http://***@host/x");
  EXPECT_EQ(without_passwords("[\"https://a:b@one:80\", \"http://two\"] # http://token@three"),
            "[\"https://***@one:80\", \"http://two\"] # http://***@three");
  EXPECT_EQ(without_passwords("http://a:p@ss@host"), "http://***@host");
}

TEST(UrlPasswords, TextWithoutAnyStaysAsItIs) {
  for (const char* text : {"", "http://host/a@b", "mail@host", "x = 1\n://\n", "https://host?q=a@b"})
    EXPECT_EQ(without_passwords(text), text);
}

}  // namespace
}  // namespace sluice::url_passwords_test
