// SPDX-License-Identifier: Apache-2.0
// How much of asynchronous tensor parallelism's communication hides behind its products, over a
// simulated wire that takes as long as the computation: `name hidden target`, on every rank count
// that mpirun gives.
#include "tessera/kernels/tensor.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include "mpi/comm/paced_communicator.hpp"
#include "tessera/comm/world.hpp"
#include "tessera/parallel/chunked_products.hpp"

namespace {

using namespace tessera;
using at::Tensor;
using parallel::TokenChunks;

constexpr std::int64_t kTokens = 2048, kDim = 768, kChunks = 16;

struct Seconds {
  double forward, backward;
};

class Bench {
 public:
  explicit Bench(comm::World& world) : world_(world) {
    const std::int64_t local = kDim / world.size();
    piece_ = at::randn({kTokens / world.size(), kDim}).requires_grad_();
    column_ = {at::randn({local, kDim}).requires_grad_(), 0};
    hidden_ = at::randn({kTokens, local}).requires_grad_();
    row_ = {at::randn({kDim, local}).requires_grad_(), 0};
  }

  void gather() {
    run("gather + product", [this](const TokenChunks& how) {
      return parallel::gathered_products(piece_, std::span(&column_, 1), how)[0];
    });
  }
  void reduce() {
    run("product + reduce",
        [this](const TokenChunks& how) { return parallel::reduced_product(hidden_, row_, how); });
  }

 private:
  using Product = std::function<Tensor(const TokenChunks&)>;

  void run(const char* name, const Product& product) {
    const auto free = world_.make(comm::Backend::mpi, "tp");
    const Seconds compute = best(product, {free.get(), kChunks, true});
    const double bytes = static_cast<double>(piece_.nbytes()) * (world_.size() - 1);
    const auto paced =
        test::paced({0, bytes / compute.forward, true})(world_.make(comm::Backend::mpi, "tp"));
    const Seconds apart = best(product, {paced.get(), kChunks, false}),
                  together = best(product, {paced.get(), kChunks, true});
    print(name, "forward", compute.forward, apart.forward, together.forward);
    print(name, "backward", compute.backward, apart.backward, together.backward);
  }

  Seconds once(const Product& product, const TokenChunks& how) {
    using Clock = std::chrono::steady_clock;
    world_.control().barrier();
    const auto begin = Clock::now();
    const Tensor out = product(how);
    world_.control().barrier();
    const auto between = Clock::now();
    out.backward(at::ones_like(out));
    world_.control().barrier();
    return {std::chrono::duration<double>(between - begin).count(),
            std::chrono::duration<double>(Clock::now() - between).count()};
  }
  Seconds best(const Product& product, const TokenChunks& how) {
    Seconds least = once(product, how);
    for (int i = 0; i < 9; ++i) {
      const Seconds next = once(product, how);
      least = {std::min(least.forward, next.forward), std::min(least.backward, next.backward)};
    }
    return least;
  }
  void print(const char* name, const char* pass, double compute, double apart,
             double together) const {
    if (world_.rank() != 0) return;
    const double wire = apart - compute, hidden = (apart - together) / std::min(compute, wire);
    std::printf(
        "%-17s %-8s compute %6.1f ms  wire %6.1f ms  together %6.1f ms  hidden %.2f  target 0.80\n",
        name, pass, 1e3 * compute, 1e3 * wire, 1e3 * together, hidden);
  }

  comm::World& world_;
  Tensor piece_, hidden_;
  model::Weight column_, row_;
};

}  // namespace

int main(int argc, char** argv) {
  comm::World world(&argc, &argv);
  at::set_num_threads(1);
  Bench bench(world);
  bench.gather();
  bench.reduce();
}
