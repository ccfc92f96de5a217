#include "cli/terminal/ink.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace sluice::cli::ink_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Curve, GoesFromTheLowestValueToTheHighest) {
  EXPECT_EQ(curve({0, 1, 2, 3, 4, 5, 6, 7}, 20, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(curve({0, 1, 2, 3, 4, 5, 6, 7}, 20, false), "_.,-~+*#");
  EXPECT_EQ(curve({5, -5}, 20, true), "█▁");
}

TEST(Curve, IsFlatWhereNothingChanges) { EXPECT_EQ(curve({3, 3, 3}, 20, true), "▅▅▅"); }

TEST(Curve, OfMoreValuesThanCellsHasTheirMeans) {
  // Means 0, 1, 2, 3 of pairs.
  EXPECT_EQ(curve({-1, 1, 0, 2, 1, 3, 2, 4}, 4, true), "▁▃▆█");
}

TEST(Curve, NeedsTwoValues) {
  EXPECT_EQ(curve({}, 20, true), "");
  EXPECT_EQ(curve({1}, 20, true), "");
  EXPECT_EQ(curve({1, kNan}, 20, true), "");
  EXPECT_EQ(curve({1, kNan, 2}, 20, true), "▁█");
}

TEST(Fitted, CutsByCellsAndNotByBytes) {
  EXPECT_EQ(fitted({{"你好", Ink::kPlain}, {"abc", Ink::kPlain}}, 5, false), "你好a");
  EXPECT_EQ(fitted({{"你好", Ink::kPlain}}, 3, false), "你");
}

TEST(Fitted, ColoursTakeNoCells) {
  EXPECT_EQ(fitted({{"ab", Ink::kGreen}, {"cd", Ink::kPlain}}, 3, true), "\033[32mab\033[0mc");
  EXPECT_EQ(fitted({{"ab", Ink::kGreen}, {"cd", Ink::kPlain}}, 1, true), "\033[32ma\033[0m");
}

TEST(Fitted, TextCannotBringColoursOfItsOwn) { EXPECT_EQ(fitted({{"a\033[31m", Ink::kPlain}}, 80, true), "a\\x1b[31m"); }

// With the environment as given; gives it back.
class Environment : public ::testing::Test {
 protected:
  void set(const char* name, const char* value) {
    if (value == nullptr)
      ::unsetenv(name);
    else
      ::setenv(name, value, 1);
  }
  void TearDown() override {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) ::unsetenv(name);
  }
  bool unicode(const char* all, const char* ctype, const char* lang) {
    set("LC_ALL", all), set("LC_CTYPE", ctype), set("LANG", lang);
    return abilities_of(stdout).unicode;
  }
};

TEST_F(Environment, TheFirstLocaleThatIsSetSaysWhetherUnicodeIsShown) {
  EXPECT_TRUE(unicode(nullptr, nullptr, "en_US.UTF-8"));
  EXPECT_TRUE(unicode(nullptr, "C.utf8", "C"));
  EXPECT_FALSE(unicode("C", "C.utf8", "en_US.UTF-8"));
  EXPECT_FALSE(unicode(nullptr, nullptr, nullptr));
  EXPECT_TRUE(unicode("", "", "de_DE.UTF-8"));
}

TEST_F(Environment, WhatIsNoTerminalHasNeitherCursorNorColour) {
  std::FILE* file = std::tmpfile();
  EXPECT_FALSE(abilities_of(file).cursor);
  EXPECT_FALSE(abilities_of(file).colour);
  std::fclose(file);
}

}  // namespace
}  // namespace sluice::cli::ink_test
