#include "base/error.h"
#include "data/jsonl_reader.h"
#include "data/preference_row.h"
#include "tests/fuzz/target.h"

namespace {

// Every row that was accepted can be read.
void read(const std::filesystem::path& file, const std::vector<sluice::data::JsonlField>& fields) {
  try {
    const sluice::data::JsonlReader reader({file}, fields);
    for (size_t row = 0; row < reader.rows(); ++row) reader.values(row);
  } catch (const sluice::UserError&) {
  }
}

}  // namespace

// A file of JSON lines, plain, gzip or zstd, as prompts, as conversations and as preference pairs.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using enum sluice::data::FieldKind;
  static const sluice::fuzz::InputFolder folder;
  const auto file = folder.write("rows.jsonl", sluice::fuzz::text_of(data, size));
  read(file, {{"prompt", "prompt_field"}, {"meta.label", "label_field", kText, false}});
  read(file, {{"messages", "messages_field", kMessages}});
  read(file, {{"chosen", "chosen_field", kTextOrMessages}, {"rejected", "rejected_field", kTextOrMessages}});
  return 0;
}
