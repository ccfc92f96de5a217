#include <cctype>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/process/exit_codes.h"
#include "cli/terminal/terminal.h"
#include "cli/terminal/text_table.h"
#include "cli/types/commands.h"
#include "dsl/builtin.h"

namespace sluice::cli {
namespace {

// The comment at the head of a pipeline, without the line that names its schema to editors.
std::string head_comment(std::string_view text) {
  std::string comment;
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with('#')) break;
    if (line.starts_with("#:")) continue;
    comment += (comment.empty() ? "" : " ") + std::string(trim(std::string_view(line).substr(1)));
  }
  return comment;
}

// Up to the first colon or the end of the first sentence.
std::string first_clause(const std::string& comment) {
  for (size_t i = 0; i + 1 < comment.size(); ++i) {
    if (comment[i + 1] != ' ') continue;
    if (comment[i] == ':') return comment.substr(0, i);
    if (comment[i] == '.' && i + 2 < comment.size() && std::isupper(static_cast<unsigned char>(comment[i + 2])) != 0)
      return comment.substr(0, i);
  }
  return comment;
}

}  // namespace

int list_pipelines() {
  const auto pipelines = dsl::builtin_pipelines();
  if (pipelines.empty())
    throw UserError("no pipelines come with this program: share/sluice/pipelines does not lie beside its folder",
                    "install it with cmake --install");
  TextTable table({"extends = \"builtin:NAME\"", ""}, TextTable::Last::kText);
  for (const dsl::BuiltinPipeline& pipeline : pipelines)
    table.add({pipeline.name, printable(first_clause(head_comment(read_file(pipeline.file))))});
  print_text(table.text() + "in " + printable(pipelines.front().file.parent_path().string()) + "\n");
  return kDone;
}

}  // namespace sluice::cli
