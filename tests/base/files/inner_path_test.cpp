#include "base/files/inner_path.h"

#include <gtest/gtest.h>

namespace sluice::inner_path_test {
namespace {

TEST(InnerPath, NamesBelowAFolderAreFine) {
  for (const char* path : {"samples.jsonl", "texts/a.jsonl", "..a", "a..", ".hidden", "ein Ort/größe.txt", "~", "$HOME"}) {
    EXPECT_EQ(fault_of_inner_path(path), "") << path;
  }
}

TEST(InnerPath, WhatMayLeadElsewhereHasAFault) {
  for (const char* path : {"", "/etc/passwd", "..", "../a", "a/../b", "a/..", ".", "./a", "a//b", "a/", "/", "a\nb", "a\x1b[2J",
                           "a\x7f", "\xff\xfe", "\xc0\xaf"}) {
    EXPECT_NE(fault_of_inner_path(path), "") << path;
  }
  EXPECT_NE(fault_of_inner_path(std::string_view("a\0b", 3)), "");
  EXPECT_NE(fault_of_inner_path(std::string(241, 'a')), "");
  EXPECT_EQ(fault_of_inner_path(std::string(240, 'a')), "");
}

}  // namespace
}  // namespace sluice::inner_path_test
