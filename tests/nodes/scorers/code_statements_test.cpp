#include "tests/nodes/scorers/code_tests_fixture.h"

// Tests that are statements: what they may do with a solution, and what a solution may not do to them.

namespace sluice::nodes::code_statements_test {
namespace {

class CodeStatements : public CodeTestsTest {
 protected:
  // The share of the statements that pass.
  float share(const std::string& code, const std::vector<std::string>& statements) {
    params.score_by = ScoreBy::kShare;
    return score(Json{{"tests", statements}}.dump(), code);
  }
};

// ---- what works ----

TEST_F(CodeStatements, NamesOfOneStatementAreThereInTheNext) {
  EXPECT_EQ(share("def f(x): return 2 * x", {"x = f(2)", "def g(y): return f(y) + 1", "assert g(x) == 9"}), 1);
}

TEST_F(CodeStatements, ObjectsOfTheSolutionStayThereAndAnswer) {
  EXPECT_EQ(share("class Stack:\n"
                  "  def __init__(self): self.items = []\n"
                  "  def push(self, x): self.items.append(x)\n"
                  "  def pop(self): return self.items.pop()\n"
                  "  def __len__(self): return len(self.items)\n",
                  {"s = Stack()", "s.push([2]); s.push(3)", "assert len(s) == 2 and s.pop() == 3 and s.items == [[2]]",
                   "assert isinstance(s, Stack)"}),
            1);
}

TEST_F(CodeStatements, ObjectsOfTheSolutionTakePartInOperationsWithEachOther) {
  EXPECT_EQ(share("class V:\n"
                  "  def __init__(self, x): self.x = x\n"
                  "  def __add__(self, other): return V(self.x + other.x)\n"
                  "  def __eq__(self, other): return self.x == other.x\n"
                  "  def __lt__(self, other): return self.x < other.x\n"
                  "  def __repr__(self): return f'V({self.x})'\n",
                  {"assert V(1) + V(2) == V(3)", "assert str(V(1)) == 'V(1)'", "assert sorted([V(2), V(1)]) == [V(1), V(2)]"}),
            1);
}

TEST_F(CodeStatements, ArgumentsAreChangedInPlace) {
  EXPECT_EQ(share("def order(x): x.sort()\ndef mark(grid): grid[0][0] = 9",
                  {"x = [3, 1]\norder(x)\nassert x == [1, 3]", "g = [[1], [2]]\nrow = g[0]\nmark(g)\nassert row == [9]"}),
            1);
}

TEST_F(CodeStatements, FunctionsOfATestAreCalledByTheSolution) {
  EXPECT_EQ(share("def each(f, x): return [f(y) for y in x]",
                  {"assert each(lambda y: y + 1, [1, 2]) == [2, 3]", "assert each(len, ['a']) == [1]"}),
            1);
}

TEST_F(CodeStatements, ExceptionsOfTheSolutionCanBeCaughtByName) {
  EXPECT_EQ(share("class Bad(ValueError): pass\n"
                  "def f(x):\n"
                  "  if x < 0: raise Bad('negative')\n"
                  "  raise KeyError(x)\n",
                  {"try:\n  f(-1)\n  assert False\nexcept Bad as error:\n  assert str(error) == 'negative'",
                   "try:\n  f(1)\n  assert False\nexcept KeyError as error:\n  assert error.args == (1,)"}),
            1);
}

TEST_F(CodeStatements, GeneratorsCoroutinesAndLibraryTypesArrive) {
  EXPECT_EQ(share("from collections import Counter, namedtuple\n"
                  "from fractions import Fraction\n"
                  "P = namedtuple('P', 'x y')\n"
                  "def numbers(n):\n"
                  "  for i in range(n): yield i\n"
                  "async def later(x): return x + 1\n"
                  "def values(): return Fraction(1, 3), Counter('aab'), P(1, 2), {1: {2}}, 10**30, b'x', 1.5, None\n",
                  {"assert list(numbers(3)) == [0, 1, 2]", "import asyncio\nassert asyncio.run(later(1)) == 2",
                   "from fractions import Fraction as F\n"
                   "assert values() == (F(1, 3), {'a': 2, 'b': 1}, (1, 2), {1: {2}}, 10**30, b'x', 1.5, None)",
                   "assert values()[2].y == 2"}),
            1);
}

TEST_F(CodeStatements, SolutionCanBeImported) {
  EXPECT_EQ(share("def f(x): return x", {"from solution import f as g\nassert g(1) == 1"}), 1);
}

TEST_F(CodeStatements, FunctionUnderTestMayHaveTheNameOfOneOfPythons) {
  EXPECT_EQ(share("def sum(a, b): return a * b", {"assert sum(2, 3) == 6", "assert sum(3, 3) == 9"}), 1);
}

TEST_F(CodeStatements, StatementThatFailsDoesNotFailThoseBehindIt) {
  EXPECT_FLOAT_EQ(share("def f(x): return x", {"assert f(1) == 2", "assert f(", "assert f(1) == 1"}), 1.0f / 3);
}

TEST_F(CodeStatements, AnswersAreLimited) {
  params.output_kb = 1;
  EXPECT_FLOAT_EQ(share("def f(n): return 'x' * n", {"assert len(f(900)) == 900", "assert len(f(1100)) == 1100"}), 0.5f);
}

// ---- forgery ----

TEST_F(CodeStatements, EndingEarlyPassesNothing) {
  for (const char* end : {"import os; os._exit(0)", "import sys; sys.exit(0)", "raise SystemExit(0)", "quit()"}) {
    EXPECT_EQ(score(kDoubles, end), 0) << end;
    EXPECT_EQ(score(kDoubles, std::string("def f(x):\n  ") + end), 0) << end;
  }
}

TEST_F(CodeStatements, WritingVerdictsPassesNothing) {
  for (const char* line : {"loaded\\ntrue\\ntrue\\ntrue\\n", "loaded\\npassed\\npassed\\npassed\\n", "passed\\n"}) {
    EXPECT_EQ(share("import os\nfor fd in range(3, 20):\n  try: os.write(fd, b'" + std::string(line) +
                        "' * 3)\n  except OSError: pass\nos._exit(0)",
                    {"assert f(1) == 2", "assert f(5) == 10", "assert f('a') == 'aa'"}),
              0)
        << line;
  }
}

TEST_F(CodeStatements, FramesOfTheRunnerHoldNoVerdict) {
  EXPECT_EQ(share("import os, sys\n"
                  "frame = sys._getframe(1)\n"
                  "while frame:\n"
                  "  for value in frame.f_locals.values():\n"
                  "    out = getattr(value, 'out', None)\n"
                  "    if out: out.write(b'loaded\\npassed\\npassed\\n'); out.flush()\n"
                  "  frame = frame.f_back\n"
                  "os._exit(0)\n",
                  {"assert f(1) == 2", "assert f(2) == 3"}),
            0);
}

// Writes verdicts into every file that the frames have, with each of their texts in front, which may be what makes one count.
TEST_F(CodeStatements, FramesOfTheRunnerHoldNothingThatMakesAVerdict) {
  EXPECT_EQ(share("import os, sys\n"
                  "texts, found, frame = [''], [], sys._getframe(1)\n"
                  "while frame:\n"
                  "  for value in list(frame.f_locals.values()):\n"
                  "    held = list(value.values()) if isinstance(value, dict) else [value]\n"
                  "    texts += [text + ' ' for text in held if isinstance(text, str)]\n"
                  "    found += [value.fileno] if hasattr(value, 'fileno') else []\n"
                  "  frame = frame.f_back\n"
                  "for fileno in found:\n"
                  "  for text in texts:\n"
                  "    for verdict in ('loaded', 'true', 'true', 'passed', 'passed'):\n"
                  "      try: os.write(fileno(), (text + verdict + '\\n').encode())\n"
                  "      except (OSError, ValueError): pass\n"
                  "os._exit(0)\n",
                  {"assert f(1) == 2", "assert f(2) == 3"}),
            0);
}

TEST_F(CodeStatements, FramesAndObjectsOfTheRunnerHoldNoTest) {
  EXPECT_EQ(share("import gc, sys\n"
                  "def f(x):\n"
                  "  seen, frame = [], sys._getframe()\n"
                  "  while frame:\n"
                  "    seen += [repr(v) for v in (*frame.f_locals.values(), *frame.f_globals.values())]\n"
                  "    frame = frame.f_back\n"
                  "  seen += [repr(o) for o in gc.get_objects() if isinstance(o, (str, list, dict))]\n"
                  "  return 2468013579 if any('24680' + '13579' in text for text in seen) else None\n",
                  {"x = 1\nassert f(x) == 2468013579"}),
            0);
}

// Equal to everything, near everything, in everything, and swallowing exceptions.
constexpr const char* kLiar = R"(
class Liar:
  def __eq__(self, other): return True
  def __ne__(self, other): return False
  def __lt__(self, other): return True
  __le__ = __gt__ = __ge__ = __contains__ = __lt__
  def __sub__(self, other): return 0.0
  __rsub__ = __add__ = __radd__ = __truediv__ = __mod__ = __sub__
  def __abs__(self): return 0.0
  def __float__(self): return self
  def __call__(self, *arguments): return self
  def __hash__(self): return hash(2)
  def __enter__(self): return self
  def __exit__(self, *error): return True
  def __instancecheck__(self, other): return True
  __class__ = int
class Number(int):
  def __eq__(self, other): return True
class Numbers(list):
  def __eq__(self, other): return True
def f(x): return Liar()
def g(x): return Number(5)
def h(x): return Numbers()
class k(float):
  def __eq__(self, other): return True
  def __sub__(self, other): return 0.0
)";

TEST_F(CodeStatements, ObjectThatIsEqualToEverythingIsEqualToNoData) {
  EXPECT_EQ(share(kLiar, {"assert f(1) == 2",
                          "assert 2 == f(1)",
                          "assert [f(1)] == [2]",
                          "assert {f(1)} == {2}",
                          "assert f(1) in (2, 3)",
                          "assert 2 in f(1)",
                          "assert 1 < f(1) < 3",
                          "assert not f(1) != 2",
                          "assert abs(f(1) - 2) < 1e-6",
                          "assert abs(2 - f(1)) < 1e-6",
                          "assert f(1) - 2 == 0",
                          "import math\nassert math.isclose(f(1), 2)",
                          "with f(1) as x:\n  assert x == 2",
                          "import unittest\nunittest.TestCase().assertEqual(f(1), 2)",
                          "import unittest\nunittest.TestCase().assertAlmostEqual(f(1), 2)",
                          "assert isinstance(f(1), int)",
                          "assert g(1) == 2",
                          "assert h(1) == [2]",
                          "assert k(1) == 2",
                          "assert abs(k(1) - 2) < 1e-6"}),
            0);
}

TEST_F(CodeStatements, NamesOfPythonAreNotTheSolutions) {
  EXPECT_EQ(share("import builtins, math\n"
                  "def abs(x): return 0\n"
                  "def len(x): return 2\n"
                  "def all(x): return True\n"
                  "builtins.abs, builtins.len, builtins.all = abs, len, all\n"
                  "math.isclose = lambda *_: True\n"
                  "def f(x): return 7\n",
                  {"assert abs(f(1) - 2) < 1e-6", "assert len([f(1)]) == 2", "assert all([f(1) == 2])",
                   "assert math.isclose(f(1), 2)", "import math\nassert math.isclose(f(1), 2)"}),
            0);
}

TEST_F(CodeStatements, LibraryObjectsThatAreEqualToEverythingDoNotArrive) {
  EXPECT_EQ(share("from unittest.mock import ANY\n"
                  "import unittest.mock as math\n"
                  "x = f = ANY\n"
                  "def g(y): return ANY\n",
                  {"assert x == 5", "assert g(1) == 5", "assert ANY == 5", "assert math.ANY == 5"}),
            0);
}

TEST_F(CodeStatements, EndOfAnIterationOutOfACallEndsNoLoopOfTheTest) {
  EXPECT_EQ(share("def f(x): raise StopIteration",
                  {"assert all(map(f, [1, 2]))", "for y in map(f, [1]):\n  assert False", "assert list(map(f, [1])) == []"}),
            0);
}

TEST_F(CodeStatements, WhatTheSolutionReplacesInItsProcessIsItsOwn) {
  EXPECT_EQ(share("import atexit, builtins, json, os, sys, threading\n"
                  "json.dumps = lambda *_: '{\"value\": true}'\n"
                  "os._exit = sys.exit = builtins.exec = lambda *_: None\n"
                  "sys.excepthook = sys.unraisablehook = lambda *_: None\n"
                  "builtins.AssertionError = builtins.BaseException = KeyError\n"
                  "builtins.print = lambda *_: None\n"
                  "sys.settrace(lambda *_: None)\n"
                  "atexit.register(lambda: os.write(4, b'passed\\n'))\n"
                  "def later():\n"
                  "  while True: os.write(4, b'{\"value\": true}\\n')\n"
                  "threading.Thread(target=later, daemon=True).start()\n"
                  "def f(x): return x\n",
                  {"assert f(1) == 2", "assert f(3) == 4"}),
            0);
}

TEST_F(CodeStatements, ProcessesThatOutliveTheSolutionPassNothing) {
  EXPECT_EQ(share("import os\n"
                  "if os.fork() == 0:\n"
                  "  while True:\n"
                  "    for fd in range(1, 20):\n"
                  "      try: os.write(fd, b'loaded\\npassed\\n{\"value\": true}\\n')\n"
                  "      except OSError: pass\n"
                  "os._exit(0)\n",
                  {"assert f(1) == 2", "assert f(2) == 3"}),
            0);
}

TEST_F(CodeStatements, AnswersThatAreNoneFailTheTestThatAsked) {
  for (const char* answer : {"5", "null", "[[[", "{'value': ['int', 'zz']}", "{'value': ['numpy', ['O', [], [1]]]}",
                             "{'raised': ['SystemExit'], 'arguments': [0]}", "{'raised': [7, {}], 'arguments': 3}",
                             "{'call': 0, 'values': [], 'keywords': {}}", "{'value': ['namedtuple', ['x y', ['a'], [1]]]}"}) {
    EXPECT_EQ(share("import os\n"
                    "def f(x):\n"
                    "  for fd in range(3, 8):\n"
                    "    try: os.write(fd, \"" +
                        std::string(answer) +
                        "\\n\".replace(\"'\", '\"').encode())\n"
                        "    except OSError: pass\n"
                        "  os._exit(0)\n",
                    {"assert f(1) == 2", "assert f(1) == 2"}),
              0)
        << answer;
  }
}

TEST_F(CodeStatements, ProcessOfTheTestsIsOutOfSight) {
  EXPECT_EQ(share("import os\n"
                  "def f(x):\n"
                  "  for pid in filter(str.isdigit, os.listdir('/proc')):\n"
                  "    try: text = open(f'/proc/{pid}/cmdline', 'rb').read()\n"
                  "    except OSError: continue\n"
                  "    if b'judge' in text: return 2\n",
                  {"assert f(1) == 2"}),
            0);
}

}  // namespace
}  // namespace sluice::nodes::code_statements_test
