#include "base/text/url_passwords.h"

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

TEST(UrlPasswords, AUrlOfAMessageHasNoQueryEither) {
  EXPECT_EQ(shown_url("https://host/score?api_key=s3cret#x"), "https://host/score?...");
  EXPECT_EQ(shown_url("https://u:s3cret@[::1]:80?key=s3cret"), "https://***@[::1]:80?...");
  EXPECT_EQ(shown_url("http://:s3cret@127.0.0.1:5000/a@b"), "http://***@127.0.0.1:5000/a@b");
  for (const char* plain : {"http://host", "http://[::1]/a@b", "http://host:80/claude@2024:predict", "", "host"})
    EXPECT_EQ(shown_url(plain), plain);
}

TEST(UrlPasswords, OfWhatIsNoUrlNothingIsShownInFrontOfTheLastAt) {
  EXPECT_EQ(shown_url("http://u:s3/cr?t@host/x"), "http://***@host/x");
  EXPECT_EQ(shown_url("http://u:s3 cret@ho st/x"), "http://***@ho st/x");
  for (const char* odd : {"http//u:s3cret@host", "u:s3cret@host", "http:/u:s3cret@host"}) EXPECT_EQ(shown_url(odd), "***@host");
}

}  // namespace
}  // namespace sluice::url_passwords_test
