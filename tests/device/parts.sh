# SPDX-License-Identifier: Apache-2.0
# The parts of first_hour.sh. On the simulated GPU the same commands run with tiny sizes; what only a real machine has is left out.

# quick FILTER: --gtest_filter of a few cases for the simulated GPU, and of all for a real one.
quick() { [ $device = cuda ] || echo "--gtest_filter=$1"; }

# sanitized TOOL PROGRAM...: the program's tests under compute-sanitizer, in several processes at the same time. It sees allocations
# of LibTorch only if they are not cached.
sanitized() {
  local tool=$1 shards i code=0 jobs=() logs; shift
  shards=$(($(nproc) < 16 ? 1 : 8)) logs=$(mktemp -d)
  trap 'cat "$logs"/*; exit 124' TERM  # out of time: what they have said so far
  for ((i = 0; i < shards; i++)); do
    GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i PYTORCH_NO_CUDA_MEMORY_CACHING=1 \
      compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 "$@" >"$logs/$i" 2>&1 & jobs+=($!)
  done
  for i in "${jobs[@]}"; do wait "$i" || code=$?; done
  cat "$logs"/*; rm -r "$logs"
  return $code
}

# compute-sanitizer looks at the kernels that are Tessera's own. The simulated GPU has checkers of its own.
part_a() {
  local tool own='Joined*:Copy*:AddRuns.*:SumOfChoices.*:Swiglu.*:ClampedGate.*:RmsNorm.*:SummedRmsNorm.*:Rope*:AdamWSweep.*:Embedding.*:CrossEntropy.*:DeviceScaledBytes.*:Elementwise.*:ExactSum.*'
  measure kernels.twins 180 alone gpu "$(program kernels_test)" $(quick 'Swiglu.*')
  measure kernels.layers 180 alone gpu "$(program parallel_test)" $(quick 'LinearCrossEntropy.ScalesByTheIncomingGradient')
  for tool in memcheck racecheck initcheck; do
    if [ $device = sim ]; then
      measure sanitizer.$tool 180 alone gpu "$(program kernels_test)" "$(quick 'RmsNorm.*')"
    elif command -v compute-sanitizer >/dev/null; then
      measure sanitizer.$tool 300 sanitized "$tool" "$(program kernels_test)" --gtest_filter="$own"
    else
      impossible sanitizer.$tool "compute-sanitizer is not installed"
    fi
  done
}

# Several ranks on one GPU need a newer NCCL than LibTorch's wheel brings; pack.sh can take one along. A test that waits for ever
# says where before the measurement's time is over.
part_b() {
  local -x TESSERA_TEST_SECONDS=40
  measure nccl.collectives.1 120 ranks 1 comm "$(program comm_mpi_test)" $(quick 'Backends/Collectives.AllReduce*:Device.SplitsBehindAnOperation')
  measure nccl.mesh.1 60 ranks 1 comm "$(program mesh_mpi_test)"
  if [ $device = cuda ] && ! python3 "$here/record.py" nccl "$results" 2.30; then
    local name
    for name in collectives.2 mesh.2 fsdp.2 tp.2 pp.2 cp.2 ep.2 ep.graphs.2 cube.8 tp.graphs.2 registered.2 graphs.2; do impossible nccl.$name "several ranks on one GPU need NCCL 2.30"; done
    return
  fi
  measure nccl.collectives.2 120 ranks 2 comm "$(program comm_mpi_test)" $(quick 'Backends/Collectives.AllReduce*:Device.SplitsBehindAnOperation')
  measure nccl.mesh.2 60 ranks 2 comm "$(program mesh_mpi_test)"
  measure nccl.fsdp.2 60 life train 2 --parallelism.data_parallel_shard_degree 2
  measure nccl.tp.2 60 life train 2 --parallelism.tensor_parallel_degree 2
  measure nccl.pp.2 60 life train 2 --parallelism.pipeline_parallel_degree 2
  measure nccl.cp.2 60 life train 2 --parallelism.context_parallel_degree 2
  measure nccl.ep.2 60 life mixture 2 --parallelism.data_parallel_shard_degree 2 --parallelism.expert_parallel_degree 2
  measure nccl.ep.graphs.2 60 life mixture 2 --parallelism.data_parallel_shard_degree 2 --parallelism.expert_parallel_degree 2 \
    --parallelism.expert_parallel_capacity_factor 2 --parallelism.expert_parallel_comm_backend deepep --compile.enable
  measure nccl.cube.8 100 life train 8 --parallelism.pipeline_parallel_degree 2 --parallelism.data_parallel_shard_degree 2 \
    --parallelism.tensor_parallel_degree 2
  measure nccl.tp.graphs.2 60 life train 2 --parallelism.tensor_parallel_degree 2 --compile.enable
  measure nccl.registered.2 60 life train 2 --parallelism.data_parallel_shard_degree 2 --parallelism.fsdp_register_buffers
  measure nccl.graphs.2 120 ranks 2 gpu "$(program step_graph_test)" $(quick '*Sharded*')
}

# Their references are computed on the host: with a few threads where there are many cores.
part_c() {
  local few=''; [ $device = cuda ] || few="env TESSERA_SIM_KERNELS=host TESSERA_ROWS=2"
  [ $device = sim ] || [ "$(nproc)" -lt 16 ] || local -x OMP_NUM_THREADS=4 OMP_WAIT_POLICY=passive
  measure gradients.families 240 ranks 1 gpu "$(program family_gradients_test)" $(quick '*llama3')
  measure gradients.rows 240 ranks 1 gpu "$(program gradient_test)" $(quick 'Gradient.Float32')
  measure gradients.attention 120 ranks 1 gpu "$(program context_attention_test)" $(quick '*EveryMaskByTheBook')
  measure gradients.offload 120 ranks 1 gpu $few "$(program activation_offload_test)"
}

part_d() {
  local what
  for what in resume async rewind killed memory deterministic; do measure life.$what 120 life $what; done
}

part_e() {
  local size=full tiny=''; [ $device = cuda ] || size=tiny tiny=tiny-
  measure speed.tessera 180 speed $size
  measure speed.float8 120 speed $size --model.converters quantize.linear.float8 --quantize.linear.float8.recipe_name rowwise \
    --quantize.linear.float8.filter_fqns output
  measure speed.float8.gathered 120 speed $size --model.converters quantize.linear.float8 --quantize.linear.float8.filter_fqns output \
    --quantize.linear.float8.enable_fsdp_float8_all_gather
  measure speed.trace 90 speed $size --profiling.enable_profiling --profiling.profile_freq 4
  measure speed.moe 120 speed ${tiny}moe
  measure speed.gpt-oss 120 speed ${tiny}gpt-oss
  if [ $device = sim ]; then
    measure speed.torch.eager 20 python3 -m py_compile "$here/beside_pytorch.py"
    measure speed.torch.compile 20 python3 "$here/beside_pytorch.py" --help
    measure speed.torch.moe 20 python3 "$here/beside_pytorch.py" --help
    measure speed.torch.moe.compile 20 python3 "$here/beside_pytorch.py" --help
  else
    measure speed.torch.eager 120 python3 "$here/beside_pytorch.py"
    measure speed.torch.compile 150 python3 "$here/beside_pytorch.py" --compile
    measure speed.torch.moe 120 python3 "$here/beside_pytorch.py" --moe
    measure speed.torch.moe.compile 150 python3 "$here/beside_pytorch.py" --moe --compile
  fi
}

part_f() {
  measure bandwidth.kernels 240 alone gpu "$(program kernel_bandwidth)" "$([ $device = cuda ] && echo 512 || echo 0.01)"
  local gemm=() kernels=() bytes=65536,16777216  # ranks that share a GPU take turns: large calls are slow
  [ $device = cuda ] || gemm=(--shape 64x32x16) kernels=(--rows 64 --columns 128) bytes=1024
  measure bench.gemm 60 bench 1 gemm "${gemm[@]}"
  measure bench.kernels 60 bench 1 kernels "${kernels[@]}"
  measure bench.comm.2 60 bench 2 comm --registered --job.share_device --bytes $bytes
}

# Kernels are short, so that the host's launches are a part of the time.
part_g() {
  local size=short few=''; [ $device = cuda ] || few="env TESSERA_SIM_KERNELS=host"
  measure graphs.equal 180 ranks 1 gpu $few "$(program step_graph_test)"
  [ $device = cuda ] || size=tiny
  measure graphs.without 120 speed $size
  measure graphs.with 120 speed $size --compile.enable
  [ $device = cuda ] && size=micro
  measure graphs.micro.without 120 speed $size
  measure graphs.micro.with 120 speed $size --compile.enable
  [ $device = cuda ] && size=micro-moe || size=tiny-moe
  measure graphs.moe.without 120 speed $size
  measure graphs.moe.with 120 speed $size --compile.enable
}

tessera=$(program tessera)
life() { "$here/life.sh" "$tessera" "$@"; }
speed() { "$here/speed.sh" "$tessera" "$@"; }
# bench RANKS VERB [FLAG...], in a shell of its own
bench() { set -o pipefail; ranks "$1" gpu "$tessera" bench "${@:2}" --json | python3 "$here/bench_values.py"; }
export -f life speed bench sanitized
export here root device out tessera
