#include "base/process/world_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::world_environment_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// An environment of these variables and no other.
using Variables = std::map<std::string, std::string>;

std::optional<WorldEnvironment> world_of(const Variables& variables) {
  return world_environment([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

/// `base` with other values; an empty one takes the variable out.
Variables with(Variables base, const Variables& changes) {
  for (const auto& [name, value] : changes) {
    base.erase(name);
    if (!value.empty()) base[name] = value;
  }
  return base;
}

std::string refusal_of(const Variables& variables) {
  return message_of<UserError>([&] { world_of(variables); });
}

// Rank 5 of 8 on two hosts, as each of them tells it.
const Variables& torchrun() {
  static const Variables variables{{"RANK", "5"},         {"WORLD_SIZE", "8"},    {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"},
                                   {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "2345"}};
  return variables;
}
const Variables& open_mpi() {
  static const Variables variables{{"OMPI_COMM_WORLD_RANK", "5"},
                                   {"OMPI_COMM_WORLD_SIZE", "8"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                   {"MASTER_ADDR", "n1"}};
  return variables;
}
const Variables& mpich() {
  static const Variables variables{
      {"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}, {"MASTER_ADDR", "n1"}};
  return variables;
}
const Variables& slurm() {
  static const Variables variables{{"SLURM_JOB_ID", "1234567"},
                                   {"SLURM_STEP_ID", "0"},
                                   {"SLURM_PROCID", "5"},
                                   {"SLURM_NTASKS", "8"},
                                   {"SLURM_LOCALID", "1"},
                                   {"SLURM_NODEID", "1"},
                                   {"SLURM_TASKS_PER_NODE", "4(x2)"},
                                   {"SLURM_JOB_NODELIST", "node[003-004]"}};
  return variables;
}

void expect_rank_5_of_8(const Variables& variables, const std::string& host, int port, const std::string& from) {
  const auto world = world_of(variables);
  ASSERT_TRUE(world) << from;
  EXPECT_EQ(world->rank, 5);
  EXPECT_EQ(world->size, 8);
  EXPECT_EQ(world->local_rank, 1);
  EXPECT_EQ(world->local_size, 4);
  EXPECT_EQ(world->host, host);
  EXPECT_EQ(world->port, port);
  EXPECT_EQ(world->from, from);
}

TEST(WorldEnvironment, NothingSetIsAProcessAlone) { EXPECT_FALSE(world_of({})); }

TEST(WorldEnvironment, ReadsWhatTorchrunSets) {
  expect_rank_5_of_8(torchrun(), "n1", 2345, "torchrun or rlhf-run launch");
  EXPECT_FALSE(world_of(torchrun())->served);
}

TEST(WorldEnvironment, SeesThatTorchrunListensItself) {
  EXPECT_TRUE(world_of(with(torchrun(), {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}))->served);
  EXPECT_FALSE(world_of(with(torchrun(), {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}))->served);
}

TEST(WorldEnvironment, ReadsWhatOpenMpiSets) {
  expect_rank_5_of_8(open_mpi(), "n1", kDefaultWorldPort, "Open MPI");
  expect_rank_5_of_8(with(open_mpi(), {{"MASTER_PORT", "77"}}), "n1", 77, "Open MPI");
}

TEST(WorldEnvironment, ReadsWhatMpichSets) {
  expect_rank_5_of_8(mpich(), "n1", kDefaultWorldPort, "MPICH or Intel MPI");
  expect_rank_5_of_8(with(mpich(), {{"MASTER_PORT", "77"}}), "n1", 77, "MPICH or Intel MPI");
}

TEST(WorldEnvironment, ReadsWhatSlurmSets) {
  expect_rank_5_of_8(slurm(), "node003", 24567, "Slurm");
  expect_rank_5_of_8(with(slurm(), {{"SLURM_STEP_NODELIST", "b[2,4]"}}), "b2", 24567, "Slurm");
  expect_rank_5_of_8(with(slurm(), {{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "77"}}), "n1", 77, "Slurm");
}

TEST(WorldEnvironment, AStepOfSlurmMayHaveFewerTasksThanItsJob) {
  const Variables step{{"SLURM_NTASKS", "32"},
                       {"SLURM_TASKS_PER_NODE", "16(x2)"},
                       {"SLURM_STEP_NUM_TASKS", "8"},
                       {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}};
  expect_rank_5_of_8(with(slurm(), step), "node003", 24567, "Slurm");
}

// The script of a job, and the shell of salloc, are one process however many tasks the job has.
TEST(WorldEnvironment, OnlyAStepOfSrunHasRanks) {
  EXPECT_FALSE(world_of(with(slurm(), {{"SLURM_STEP_ID", ""}})));
  EXPECT_FALSE(world_of(with(slurm(), {{"SLURM_PROCID", ""}})));
  EXPECT_FALSE(world_of(with(slurm(), {{"SLURM_STEP_ID", "4294967290"}})));
}

TEST(WorldEnvironment, RanksOnOneHostMeetThere) {
  const auto open =
      world_of(with(open_mpi(), {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"MASTER_ADDR", ""}}));
  EXPECT_EQ(open->host, "127.0.0.1");
  EXPECT_EQ(open->port, kDefaultWorldPort);
  const auto other = world_of(with(mpich(), {{"PMI_SIZE", "4"}, {"PMI_RANK", "1"}, {"MASTER_ADDR", ""}}));
  EXPECT_EQ(other->host, "127.0.0.1");
}

TEST(WorldEnvironment, RanksOnSeveralHostsMustBeToldWhereTheyMeet) {
  for (const Variables& variables : {open_mpi(), mpich()}) {
    const std::string refusal = refusal_of(with(variables, {{"MASTER_ADDR", ""}}));
    EXPECT_THAT(refusal, HasSubstr("the 8 ranks of "));
    EXPECT_THAT(refusal, HasSubstr("MASTER_ADDR does not say"));
    EXPECT_THAT(refusal, HasSubstr("unless it is 29500"));
  }
}

TEST(WorldEnvironment, OneRankIsAProcessAlone) {
  EXPECT_FALSE(world_of(with(torchrun(), {{"WORLD_SIZE", "1"}, {"RANK", "0"}})));
  EXPECT_FALSE(world_of({{"WORLD_SIZE", "1"}}));
  EXPECT_FALSE(world_of({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  EXPECT_FALSE(world_of({{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}));
  EXPECT_FALSE(world_of(with(slurm(), {{"SLURM_NTASKS", "1"}, {"SLURM_PROCID", "0"}})));
}

TEST(WorldEnvironment, APlaceToMeetAloneIsNoStart) { EXPECT_FALSE(world_of({{"MASTER_ADDR", "n1"}, {"MASTER_PORT", "77"}})); }

TEST(WorldEnvironment, TorchrunInsideOfAStepWins) {
  Variables both = slurm();
  both.insert(torchrun().begin(), torchrun().end());
  EXPECT_EQ(world_of(with(both, {{"SLURM_PROCID", "1"}}))->from, "torchrun or rlhf-run launch");
}

TEST(WorldEnvironment, MpiInsideOfAStepWins) {
  for (const Variables& variables : {open_mpi(), mpich()}) {
    Variables both = with(slurm(), {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}});
    both.insert(variables.begin(), variables.end());
    const auto world = world_of(both);
    EXPECT_EQ(world->rank, 5);
    EXPECT_NE(world->from, "Slurm");
  }
}

// srun --mpi=pmi2: the same ranks by two names, of which Slurm's say where they meet.
TEST(WorldEnvironment, SrunThatSpeaksToMpiIsStillSlurm) {
  expect_rank_5_of_8(with(slurm(), {{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}}), "node003", 24567, "Slurm");
}

TEST(WorldEnvironment, WhatIsMissingIsNamed) {
  EXPECT_THAT(refusal_of({{"WORLD_SIZE", "4"}}),
              StartsWith("error: WORLD_SIZE is 4, but RANK is not set: torchrun and rlhf-run launch set both\n"));
  EXPECT_THAT(refusal_of({{"RANK", "0"}}),
              StartsWith("error: RANK is 0, but WORLD_SIZE is not set: torchrun and rlhf-run launch set both\n"));
  EXPECT_THAT(refusal_of({{"RANK", "0"}}),
              HasSubstr("read as a start by torchrun or rlhf-run launch; to run one process alone, unset RANK and WORLD_SIZE"));
  EXPECT_THAT(refusal_of({{"OMPI_COMM_WORLD_RANK", "1"}}), HasSubstr("OMPI_COMM_WORLD_SIZE is not set: mpirun sets both"));
  EXPECT_THAT(refusal_of({{"PMI_SIZE", "2"}}), HasSubstr("PMI_SIZE is 2, but PMI_RANK is not set: mpiexec sets both"));
}

TEST(WorldEnvironment, EveryVariableOfAStarterIsNeeded) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    EXPECT_THAT(refusal_of(with(torchrun(), {{name, ""}})), HasSubstr(std::string(name) + " is not set"));
  for (const char* name : {"RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"}) {
    const std::string whole = std::string("OMPI_COMM_WORLD_") + name;
    EXPECT_THAT(refusal_of(with(open_mpi(), {{whole, ""}})), HasSubstr(whole + " is not set"));
  }
  for (const char* name : {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"})
    EXPECT_THAT(refusal_of(with(mpich(), {{name, ""}})), HasSubstr(std::string(name) + " is not set"));
  for (const char* name :
       {"SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_TASKS_PER_NODE", "SLURM_JOB_NODELIST", "SLURM_JOB_ID"})
    EXPECT_THAT(refusal_of(with(slurm(), {{name, ""}})), HasSubstr(std::string(name) + " is not set: srun sets both"));
}

TEST(WorldEnvironment, AnEmptyVariableIsNotSet) {
  Variables empty = torchrun();
  empty["RANK"] = "";
  EXPECT_THAT(refusal_of(empty), HasSubstr("RANK is not set"));
  EXPECT_FALSE(world_of({{"RANK", ""}, {"WORLD_SIZE", ""}}));
}

TEST(WorldEnvironment, WhatIsNoNumberIsRefused) {
  for (const char* value : {"x", "-1", "1x", " 1", "1.5", "99999999999999999999", "1000001"})
    EXPECT_THAT(refusal_of(with(torchrun(), {{"RANK", value}})),
                HasSubstr("RANK is \"" + std::string(value) + "\", which is no"));
  EXPECT_THAT(refusal_of(with(torchrun(), {{"WORLD_SIZE", "0"}})), HasSubstr("which is no whole number from 1 to 1000000"));
  for (const char* port : {"0", "65536", "http"})
    EXPECT_THAT(refusal_of(with(torchrun(), {{"MASTER_PORT", port}})), HasSubstr("which is no whole number from 1 to 65535"));
  EXPECT_THAT(refusal_of(with(slurm(), {{"SLURM_TASKS_PER_NODE", "4"}})), HasSubstr("does not say how many tasks node 1 has"));
  EXPECT_THAT(refusal_of(with(slurm(), {{"SLURM_JOB_NODELIST", "a["}})), HasSubstr("\"a[\", which is no list of hosts"));
}

TEST(WorldEnvironment, WhatContradictsIsRefused) {
  EXPECT_THAT(refusal_of(with(torchrun(), {{"RANK", "8"}})), StartsWith("error: RANK is 8, but WORLD_SIZE is 8\n"));
  EXPECT_THAT(refusal_of({{"RANK", "3"}, {"WORLD_SIZE", "1"}}), HasSubstr("RANK is 3, but WORLD_SIZE is 1"));
  EXPECT_THAT(refusal_of(with(torchrun(), {{"LOCAL_RANK", "4"}})), HasSubstr("LOCAL_RANK is 4, but LOCAL_WORLD_SIZE is 4"));
  EXPECT_THAT(refusal_of(with(torchrun(), {{"RANK", "0"}})), HasSubstr("LOCAL_RANK is 1, but RANK is 0"));
  EXPECT_THAT(refusal_of(with(torchrun(), {{"LOCAL_WORLD_SIZE", "9"}})), HasSubstr("LOCAL_WORLD_SIZE is 9, but WORLD_SIZE is 8"));
  EXPECT_THAT(refusal_of(with(slurm(), {{"SLURM_LOCALID", "4"}})),
              HasSubstr("SLURM_LOCALID is 4, but SLURM_TASKS_PER_NODE is 4(x2)"));
}

TEST(WorldEnvironment, ReadsWhatItSetsForOthers) {
  ::setenv("RANK", "7", 1);  // is replaced
  ::setenv("SLUICE_TEST_COLOUR", "red=1", 1);
  Variables variables;
  size_t count = 0;
  for (const std::string& text : environment_for(
           {.rank = 5, .size = 8, .local_rank = 1, .local_size = 4, .host = "n1", .port = 2345, .served = false, .from = ""})) {
    variables[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
    ++count;
  }
  ::unsetenv("RANK");
  ::unsetenv("SLUICE_TEST_COLOUR");
  EXPECT_EQ(variables.size(), count) << "a variable is there twice";
  EXPECT_EQ(variables["SLUICE_TEST_COLOUR"], "red=1");
  expect_rank_5_of_8(variables, "n1", 2345, "torchrun or rlhf-run launch");
}

TEST(WorldEnvironment, IsThatOfThisProcessUnlessAnotherIsGiven) {
  ::setenv("WORLD_SIZE", "1", 1);
  EXPECT_EQ(environment_variable("WORLD_SIZE"), "1");
  EXPECT_FALSE(world_environment());
  ::unsetenv("WORLD_SIZE");
  EXPECT_FALSE(environment_variable("WORLD_SIZE"));
}

}  // namespace
}  // namespace sluice::world_environment_test
