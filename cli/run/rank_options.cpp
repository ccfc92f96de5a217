#include "cli/run/rank_options.h"

namespace sluice::cli {

engine::RunOptions options_of_rank(const RunStart& start) {
  engine::RunOptions options{
      .folder = start.folder, .writes_folder = start.ranks.leads(), .accept_changes = start.accept_changes};
  options.reductions = start.ranks.reductions();
  options.common_memory = start.ranks.common_memory();
  options.passes = start.ranks.passes();
  if (const auto links = start.ranks.links()) options.links.emplace(*links);
  if (start.from) options.resume_from = start.from->place.folder;
  return options;
}

}  // namespace sluice::cli
