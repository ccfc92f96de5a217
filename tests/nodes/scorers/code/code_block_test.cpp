#include "nodes/scorers/code/code_block.h"

#include <gtest/gtest.h>

namespace sluice::nodes::code_block_test {
namespace {

TEST(CodeOf, LastPythonBlockIsTheCode) {
  EXPECT_EQ(code_of("first\n```python\na = 1\n```\nbetter:\n```python\na = 2\n```\nrun it:\n```sh\npython a.py\n```\n"),
            "a = 2\n");
}

TEST(CodeOf, AnyBlockWillDoWhereNoneIsMarked) {
  EXPECT_EQ(code_of("so\n```\na = 1\n```\n"), "a = 1\n");
  EXPECT_EQ(code_of("so\n```rust\nlet a;\n```\nand\n```\na = 2\n```"), "a = 2\n");
}

TEST(CodeOf, BlockMayLackItsEnd) { EXPECT_EQ(code_of("```python\nfor i in x:\n  pri"), "for i in x:\n  pri"); }

TEST(CodeOf, EmptyBlockIsNoCode) { EXPECT_EQ(code_of("```python\n```\n"), ""); }

TEST(CodeOf, ResponseWithoutFencesIsCodeAsAWhole) { EXPECT_EQ(code_of("print(1)\n"), "print(1)\n"); }

TEST(CodeOf, FencesInsideALineEndNothing) { EXPECT_EQ(code_of("```python\ns = '```'\n```"), "s = '```'\n"); }

TEST(CodeOf, BlockOfAListIsMovedToTheLeft) {
  EXPECT_EQ(code_of("1. code\n   ```python\n   def f(x):\n     return x\n\n   ```\n2. run it"), "def f(x):\n  return x\n\n");
  EXPECT_EQ(code_of("\t```py\n\ta = 1\n\t```"), "a = 1\n");
}

TEST(CodeOf, TildesAreFencesToo) {
  EXPECT_EQ(code_of("so\n~~~python\na = 1\n~~~\nend"), "a = 1\n");
  EXPECT_EQ(code_of("~~~\n```\n~~~"), "```\n");
  EXPECT_EQ(code_of("about ~~~ 5\n```\na = 1\n```"), "a = 1\n");
}

TEST(CodeOf, LongerFencesEndWithLongerOnes) { EXPECT_EQ(code_of("````python\na = 1\n```\n````"), "a = 1\n```\n"); }

// As in a docstring with an example.
TEST(CodeOf, FenceFurtherInIsPartOfTheCode) {
  EXPECT_EQ(code_of("```python\ndef f():\n    ```\n    return 1\n```"), "def f():\n    ```\n    return 1\n");
}

TEST(CodeOf, FenceMayFollowOtherText) {
  EXPECT_EQ(code_of("<think>```python\na = 1\n```</think>```python\na = 2\n```"), "a = 2\n");
  EXPECT_EQ(code_of("a ` and ```python\na = 1\n```"), "a = 1\n");
  EXPECT_EQ(code_of("use ```f(x)``` here\n```\na = 1\n```"), "a = 1\n");
}

TEST(CodeOf, MarksOfPythonAreOfAnyCase) { EXPECT_EQ(code_of("```Python3\na = 1\n```\n```\n2\n```"), "a = 1\n"); }

TEST(CodeOf, ReadsManyFencesInOnePass) {
  std::string fences;
  for (int i = 0; i < 200'000; ++i) fences += "``` ` ";
  EXPECT_EQ(code_of(fences).size(), fences.size());
}

}  // namespace
}  // namespace sluice::nodes::code_block_test
