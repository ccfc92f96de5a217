#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/scorers/code/code_tests.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes {

inline constexpr const char* kTwoOf = R"({"inputs": ["1\n", "5\n"], "outputs": ["2\n", "10\n"]})";  // n -> 2 n
inline constexpr const char* kPass = R"({"tests": ["pass"]})";                                      // what ran to its end
inline constexpr const char* kDoubles = R"({"tests": ["assert f(1) == 2", "assert f(5) == 10", "assert f('a') == 'aa'"]})";

inline std::string fenced(const std::string& code) { return "Here it is:\n```python\n" + code + "\n```\n"; }

/// Skips its tests where no sandbox works.
class CodeTestsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    try {
      Sandbox{SandboxOptions{}};
    } catch (const UserError& error) {
      *reason() = error.message();
    }
  }
  void SetUp() override {
    if (!reason()->empty()) GTEST_SKIP() << *reason();
    params.timeout_seconds = 20;
  }

  Output run(std::vector<std::pair<std::string, std::string>> labels_and_codes) const {
    std::vector<GroupOf> groups;
    for (const auto& [label, code] : labels_and_codes) {
      groups.push_back(GroupOf{Sample().value(columns::kResponse, code)}.value(columns::kLabel, label));
    }
    return NodeHarness<CodeTests>(params).run(std::move(groups));
  }
  float score(const std::string& label, const std::string& code) const {
    return run({{label, fenced(code)}})[columns::kScore][0];
  }

  // Whether all of `code` can be done in a sandbox without an exception.
  bool works(const std::string& code) const { return score(kPass, code) == 1; }

  CodeTestsParams params;

 private:
  static std::string* reason() {
    static std::string text;
    return &text;
  }
};

}  // namespace sluice::nodes
