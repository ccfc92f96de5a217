#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

/// Where this process stands among those that were started with it, and where they meet.
struct WorldEnvironment {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // on its host
  int local_size = 1;
  std::string host;     // of rank 0, as the others reach it
  int port = 0;         // where rank 0 listens
  bool served = false;  // whoever started the ranks listens there, with a TCPStore: rank 0 too connects
  std::string from;  // who started them, for messages: "torchrun or rlhf-run launch", "Slurm", "Open MPI", "MPICH or Intel MPI"
};

/// The port where nothing says another.
inline constexpr int kDefaultWorldPort = 29500;

/// An environment variable; nothing: it is not set.
using EnvironmentVariable = std::function<std::optional<std::string>(const std::string& name)>;

/// Of this process. Not while another thread changes its environment.
std::optional<std::string> environment_variable(const std::string& name);

/// Who started this process among others, by the first of these that is there; an empty variable counts as not set:
///
///   torchrun, rlhf-run launch   RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT
///   Open MPI                    OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_RANK, _LOCAL_SIZE
///   MPICH, Intel MPI            PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS
///   Slurm, in a step            SLURM_PROCID, SLURM_STEP_NUM_TASKS (or SLURM_NTASKS), SLURM_LOCALID, SLURM_NODEID,
///                               SLURM_STEP_TASKS_PER_NODE (or SLURM_TASKS_PER_NODE)
///
/// MASTER_ADDR and MASTER_PORT say where all of them meet. Without the first: under Slurm the first host of the step, under MPI
/// 127.0.0.1 where all ranks are on this host. Without the second: under Slurm 20000 + SLURM_JOB_ID modulo 10000, under MPI
/// kDefaultWorldPort.
///
/// Nothing: the process is alone, as it is in a world of size 1. Throws UserError where something is missing, is no number, or
/// contradicts the rest.
std::optional<WorldEnvironment> world_environment(const EnvironmentVariable& variable = environment_variable);

/// The environment of this process, "NAME=value" each, for a program that is to stand there in the world: as torchrun would set
/// it.
std::vector<std::string> environment_for(const WorldEnvironment& world);

}  // namespace sluice
