#include "base/error.h"
#include "base/text/strings.h"
#include "cli/pipeline/load.h"
#include "cli/plan/commands.h"
#include "cli/plan/fit_search.h"
#include "cli/plan/plan_fit_text.h"
#include "cli/process/exit_codes.h"
#include "cli/terminal/terminal.h"

namespace sluice::cli {

int fit_pipeline(const PipelineArguments& arguments, const std::string& format) {
  const SizedPipeline pipeline = load_to_size(arguments);
  const Fit fit = search_fit(arguments, pipeline);
  const std::string& name = pipeline.plan.pipeline.name;
  print_text(format == "json" ? fit_json(name, fit) : fit_text(name, fit));
  if (fit.fits || !fit.ways.empty()) return kDone;
  throw UserError("nothing that is known makes " + name + " fit: of what was tried the least needs up to " +
                      human_bytes(fit.least.memory.total_bytes()) + " of " + human_bytes(fit.least.memory.machine_bytes),
                  "more ranks share what is trained, roles part sampling from training; or take smaller models");
}

}  // namespace sluice::cli
