#include "base/files/user_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::user_path_test {
namespace {

using ::testing::HasSubstr;

class UserPath : public ::testing::Test {
 protected:
  UserPath() {
    ::setenv("SLUICE_TEST_A", "/a b", 1);
    ::setenv("SLUICE_TEST_DOLLAR", "$SLUICE_TEST_A", 1);
    ::setenv("HOME", "/home/me", 1);
    ::unsetenv("SLUICE_TEST_NONE");
  }
};

TEST_F(UserPath, ATildeAtTheBeginningIsTheHomeFolder) {
  EXPECT_EQ(expanded_path("~"), "/home/me");
  EXPECT_EQ(expanded_path("~/models"), "/home/me/models");
  EXPECT_EQ(expanded_path("data/~/x~"), "data/~/x~");
  EXPECT_EQ(expanded_path("~other/x"), "~other/x");
}

TEST_F(UserPath, OfACommandLineOnlyTheHomeFolderIsReplaced) {
  EXPECT_EQ(with_home("~"), "/home/me");
  EXPECT_EQ(with_home("~/runs/$SLUICE_TEST_A/$$"), "/home/me/runs/$SLUICE_TEST_A/$$");
  for (const char* text : {"", "./~", "a/~/x", "~other/x", "~~"}) EXPECT_EQ(with_home(text), text);
  ::unsetenv("HOME");
  EXPECT_THAT(message_of<UserError>([] { with_home("~/runs"); }), HasSubstr("environment variable HOME is not set"));
}

TEST_F(UserPath, VariablesAreReplacedAnywhere) {
  EXPECT_EQ(expanded_path("$SLUICE_TEST_A/x"), "/a b/x");
  EXPECT_EQ(expanded_path("x${SLUICE_TEST_A}y"), "x/a by");
  EXPECT_EQ(expanded_path("~/$SLUICE_TEST_A"), "/home/me//a b");
}

TEST_F(UserPath, WhatWasPutInIsNotLookedThrough) { EXPECT_EQ(expanded_path("$SLUICE_TEST_DOLLAR"), "$SLUICE_TEST_A"); }

TEST_F(UserPath, ADollarSignThatNamesNothingStaysAndTwoAreOne) {
  for (const char* text : {"a$", "$/a", "${}", "${a", "a$-b"}) EXPECT_EQ(expanded_path(text), text);
  EXPECT_EQ(expanded_path("$$SLUICE_TEST_A"), "$SLUICE_TEST_A");
}

TEST_F(UserPath, AVariableThatIsNotSetIsNamed) {
  try {
    expanded_path("x/$SLUICE_TEST_NONE/y");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("environment variable SLUICE_TEST_NONE is not set, which the path x/$SLUICE_TEST_NONE/y needs"));
  }
}

TEST_F(UserPath, AnAbsolutePathComesBackAsItWas) {
  for (const char* path : {"/a/$SLUICE_TEST_A/$$/b$", "/plain/~"}) EXPECT_EQ(expanded_path(unexpanded_path(path)), path);
}

}  // namespace
}  // namespace sluice::user_path_test
