#include "cli/terminal/dot_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::cli::dot_plot_test {
namespace {

using ::testing::ElementsAre;

TEST(DotPlot, DrawsFromTheFirstValueToTheLast) {
  EXPECT_THAT(dot_plot({4, 3, 2, 1, 0}, 5, 5, /*unicode=*/false), ElementsAre("*    ", " *   ", "  *  ", "   * ", "    *"));
  EXPECT_THAT(dot_plot({0, 1, 2, 3}, 2, 1, /*unicode=*/true), ElementsAre("⡠⠊"));
}

TEST(DotPlot, JoinsNeighbours) {
  EXPECT_THAT(dot_plot({3, 3, 0, 0}, 4, 4, /*unicode=*/false), ElementsAre("**  ", "  * ", "  * ", "  **"));
}

TEST(DotPlot, EqualValuesLieInTheMiddle) {
  EXPECT_THAT(dot_plot({7, 7, 7}, 3, 3, /*unicode=*/false), ElementsAre("   ", "***", "   "));
  EXPECT_THAT(dot_plot({7}, 1, 1, /*unicode=*/false), ElementsAre("*"));
}

TEST(DotPlot, FewValuesAreStretched) { EXPECT_THAT(dot_plot({1, 0}, 4, 2, /*unicode=*/false), ElementsAre("*** ", "   *")); }

}  // namespace
}  // namespace sluice::cli::dot_plot_test
