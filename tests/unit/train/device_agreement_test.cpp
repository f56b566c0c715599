// SPDX-License-Identifier: Apache-2.0
// Each way in which the devices of ranks do not fit together, and its message.
#include "tessera/train/device_agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tessera::train {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Four ranks on two nodes, each with a GPU of its own.
std::vector<RankDevice> four_ranks() {
  std::vector<RankDevice> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    comm::DeviceFacts facts;
    facts.build = true;
    facts.visible = 2;
    facts.index = rank % 2;
    facts.name = "NVIDIA H200";
    facts.uuid = std::to_string(rank);
    facts.nccl_built = facts.nccl_loaded = 22809;
    facts.nccl_libraries = {"/opt/nccl/lib/libnccl.so.2"};
    ranks.push_back({rank < 2 ? "node1" : "node2", facts});
  }
  return ranks;
}

std::string problem(const std::vector<RankDevice>& ranks) {
  return device_problem(ranks, plan::DeviceChoice::automatic, false);
}

void take_gpu(RankDevice& rank, const std::string& why) {
  rank.facts.visible = 0;
  rank.facts.name.clear();
  rank.facts.trouble = why;
}

TEST(DeviceAgreement, AcceptsAGpuForEachRank) { EXPECT_THAT(problem(four_ranks()), IsEmpty()); }

TEST(DeviceAgreement, AcceptsTheHostInABuildWithoutCuda) {
  EXPECT_THAT(problem({{"node1", {}}, {"node2", {}}}), IsEmpty());
}

TEST(DeviceAgreement, RefusesCudaInABuildWithoutIt) {
  EXPECT_THAT(
      device_problem(std::vector<RankDevice>{{"node1", {}}}, plan::DeviceChoice::cuda, false),
      HasSubstr("needs a build of Tessera with CUDA"));
}

TEST(DeviceAgreement, NamesNodesWithDifferentBuilds) {
  auto ranks = four_ranks();
  ranks[2].facts = {};
  EXPECT_THAT(
      problem(ranks),
      HasSubstr(
          "rank 0 on node1 has a build of Tessera with CUDA, and rank 2 on node2 one without"));
}

TEST(DeviceAgreement, NamesTheNodeWithABrokenDriver) {
  auto ranks = four_ranks();
  for (int rank : {2, 3})
    take_gpu(ranks[static_cast<std::size_t>(rank)], "no CUDA-capable device is detected");
  EXPECT_THAT(
      problem(ranks),
      HasSubstr("2 of 4 ranks have no GPU, first rank 2 on node2 (no CUDA-capable device is "
                "detected); look at `nvidia-smi` there, or exclude that node (srun "
                "--exclude=node2)"));
}

TEST(DeviceAgreement, TrainsOnTheHostOnlyWhenAsked) {
  auto ranks = four_ranks();
  for (RankDevice& rank : ranks) take_gpu(rank, "no CUDA-capable device is detected");
  EXPECT_THAT(problem(ranks), HasSubstr("no rank has a GPU"));
  EXPECT_THAT(problem(ranks), HasSubstr("train on the host with job.device = \"cpu\""));
  EXPECT_THAT(device_problem(ranks, plan::DeviceChoice::cpu, false), IsEmpty());
}

TEST(DeviceAgreement, CountsMoreRanksThanGpus) {
  auto ranks = four_ranks();
  take_gpu(ranks[1], "it is number 1 of its node, where 1 GPUs can be seen");
  ranks[1].facts.visible = 1;
  EXPECT_THAT(problem(ranks), HasSubstr("first rank 1 on node1"));
  EXPECT_THAT(problem(ranks), HasSubstr("start 1 ranks on each node, or let ranks share GPUs"));
}

TEST(DeviceAgreement, NamesDifferentGpus) {
  auto ranks = four_ranks();
  ranks[3].facts.name = "NVIDIA A100";
  EXPECT_THAT(problem(ranks),
              HasSubstr("rank 0 on node1 has NVIDIA H200, rank 3 on node2 has NVIDIA A100"));
}

TEST(DeviceAgreement, RefusesASharedGpuUnlessAsked) {
  auto ranks = four_ranks();
  ranks[1].facts.uuid = ranks[0].facts.uuid;
  EXPECT_THAT(problem(ranks), HasSubstr("ranks 0 and 1 on node1 have the same GPU (0)"));
  EXPECT_THAT(device_problem(ranks, plan::DeviceChoice::automatic, true, false), IsEmpty());
}

TEST(DeviceAgreement, CountsTheRanksOfAGpu) {
  auto ranks = four_ranks();
  EXPECT_EQ(ranks_on_gpu(ranks, ranks[0]), 1);
  for (RankDevice& rank : ranks) rank.facts.uuid = "0";
  EXPECT_EQ(ranks_on_gpu(ranks, ranks[3]), 2) << "the same id on another node is another GPU";
}

TEST(DeviceAgreement, AcceptsTheSameIdOnTwoNodes) {
  auto ranks = four_ranks();
  ranks[2].facts.uuid = ranks[0].facts.uuid;
  EXPECT_THAT(problem(ranks), IsEmpty());
}

TEST(DeviceAgreement, NamesASecondNccl) {
  auto ranks = four_ranks();
  ranks[2].facts.nccl_libraries.push_back("/usr/lib/libnccl.so.2");
  EXPECT_THAT(problem(ranks), HasSubstr("rank 2 on node2 has more than one NCCL in its process: "
                                        "/opt/nccl/lib/libnccl.so.2, /usr/lib/libnccl.so.2"));
}

TEST(DeviceAgreement, NamesAnOlderNcclThanTheBuilds) {
  auto ranks = four_ranks();
  ranks[1].facts.nccl_loaded = 22703;
  EXPECT_THAT(problem(ranks), HasSubstr("rank 1 on node1 has loaded NCCL 22703"));
}

TEST(DeviceAgreement, NamesDifferentNccls) {
  auto ranks = four_ranks();
  ranks[3].facts.nccl_loaded = 22901;
  EXPECT_THAT(problem(ranks),
              HasSubstr("rank 0 on node1 has NCCL 22809, and rank 3 on node2 has NCCL 22901"));
}

TEST(DeviceAgreement, NamesBuildsForDifferentNccls) {
  auto ranks = four_ranks();
  ranks[2].facts.nccl_built = 22800;
  EXPECT_THAT(problem(ranks), HasSubstr("rank 0 on node1 has a build of Tessera for NCCL 22809, "
                                        "and rank 2 on node2 one for NCCL 22800"));
}

TEST(DeviceAgreement, WarnsOfDifferentDrivers) {
  auto ranks = four_ranks();
  for (RankDevice& rank : ranks) rank.facts.driver = 13000;
  EXPECT_THAT(device_warning(ranks), IsEmpty());
  ranks[2].facts.driver = 12080;
  EXPECT_THAT(problem(ranks), IsEmpty());
  EXPECT_THAT(device_warning(ranks),
              HasSubstr("rank 0 on node1 has one for CUDA 13.0, rank 2 on node2 one for CUDA "
                        "12.8"));
}

TEST(DeviceAgreement, NcclDoesNotMatterWithoutIt) {
  auto ranks = four_ranks();
  ranks[1].facts.nccl_loaded = 22703;
  ranks[2].facts.nccl_libraries.push_back("/usr/lib/libnccl.so.2");
  EXPECT_EQ(device_problem(ranks, plan::DeviceChoice::automatic, false, false), "");
}

TEST(DeviceAgreement, NcclSharesGpusWhereItIsToldTo) {
  auto ranks = four_ranks();
  ranks[1].facts.uuid = ranks[0].facts.uuid;
  const auto shared = [&](bool with_nccl) {
    return device_problem(ranks, plan::DeviceChoice::automatic, true, with_nccl);
  };
  EXPECT_THAT(shared(true),
              HasSubstr("ranks 0 and 1 on node1 have the same GPU (0), which NCCL allows from "
                        "2.30 on and with NCCL_MULTI_RANK_GPU_ENABLE=1 (rank 0 on node1 has 22809 "
                        "and not that)"));
  EXPECT_EQ(shared(false), "");
  for (RankDevice& rank : ranks) rank.facts.nccl_loaded = 23002;
  EXPECT_THAT(shared(true), HasSubstr("comm.backend = \"mpi\""));
  for (RankDevice& rank : ranks) rank.facts.nccl_shares_gpus = true;
  EXPECT_EQ(shared(true), "");
}

TEST(DeviceAgreement, TravelsAsText) {
  RankDevice sent = four_ranks()[3];
  sent.facts.pci = "0000:17:00.0";
  sent.facts.trouble = "a \"quoted\" word";
  sent.facts.nccl_shares_gpus = true;
  const RankDevice got = rank_device_of(text_of(sent));
  EXPECT_EQ(text_of(got), text_of(sent));
  EXPECT_EQ(got.facts.pci, "0000:17:00.0");
  EXPECT_EQ(got.host, "node2");
  EXPECT_EQ(got.facts.nccl_libraries, sent.facts.nccl_libraries);
}

}  // namespace
}  // namespace tessera::train
