#include "base/text/slurm_text.h"

#include <gtest/gtest.h>

namespace sluice::slurm_text_test {
namespace {

TEST(SlurmText, FirstHostOfAList) {
  EXPECT_EQ(first_host("node7"), "node7");
  EXPECT_EQ(first_host("node[003-007,12]"), "node003");
  EXPECT_EQ(first_host("node[12,003-007]"), "node12");
  EXPECT_EQ(first_host("a1,b[2,4]"), "a1");
  EXPECT_EQ(first_host("b[2,4],a1"), "b2");
  EXPECT_EQ(first_host("gpu-[01-02].cluster.org"), "gpu-01.cluster.org");
  EXPECT_EQ(first_host("r[1-2]n[01-16],r3"), "r1n01");
}

TEST(SlurmText, WhatIsNoListHasNoFirstHost) {
  for (const char* text : {"", ",a", "a[", "a[]", "a[1-2", "a1]", "[,2]"}) EXPECT_FALSE(first_host(text)) << text;
}

TEST(SlurmText, TasksOfANode) {
  EXPECT_EQ(tasks_of_node("4", 0), 4);
  EXPECT_EQ(tasks_of_node("2(x3),1", 0), 2);
  EXPECT_EQ(tasks_of_node("2(x3),1", 2), 2);
  EXPECT_EQ(tasks_of_node("2(x3),1", 3), 1);
  EXPECT_EQ(tasks_of_node("8,4(x2)", 2), 4);
}

TEST(SlurmText, ANodeThatIsNotThereHasNoCount) {
  EXPECT_FALSE(tasks_of_node("2(x3),1", 4));
  for (const char* text : {"", "x", "2(", "2(x)", "2(x3", "2(x3)1", "-2", "2 "}) EXPECT_FALSE(tasks_of_node(text, 0)) << text;
}

}  // namespace
}  // namespace sluice::slurm_text_test
