#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a prefix, moves the prefix, and uses it from there: libraries, program, find_package, pkg-config, module.
#   install_test.sh BUILD_DIR VERSION LIBDIR
set -euo pipefail
build=$1 version=$2 libdir=$3
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
fail() { printf 'install_test: %s\n' "$*" >&2; exit 1; }
unset LD_LIBRARY_PATH

cmake --install "$build" --prefix "$work/first" >"$work/log" || { tail "$work/log" >&2; fail "cmake --install"; }
prefix=$work/moved/here; mkdir "$work/moved"; mv "$work/first" "$prefix"

# Nothing in the prefix may point back to the build, or to where it was installed first.
for file in "$prefix/$libdir"/libtessera_*.so "$prefix"/bin/*; do
  [ -f "$file" ] || continue
  runpath=$(readelf -d "$file" | sed -n 's/.*R\(UN\)\{0,1\}PATH.*\[\(.*\)\]/\2/p')
  case $runpath in *"$build"* | *"$work"*) fail "$file has the RUNPATH $runpath" ;; esac
  missing=$(ldd "$file" | grep 'not found' || true); [ -z "$missing" ] || fail "$file does not find $missing"
  elsewhere=$(ldd "$file" | grep libtessera_ | grep -v "$prefix" || true); [ -z "$elsewhere" ] || fail "$file uses $elsewhere"
done
soname=$(readelf -d "$prefix/$libdir/libtessera_base.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ "$soname" = "libtessera_base.so.${version%.*}" ] || fail "SONAME is $soname"
bad=$(grep -rlF -e "$build" -e "$work" "$prefix" --include='*.cmake' --include='*.pc' --include='*.sbatch' --include='*.toml' || true)
[ -z "$bad" ] || fail "paths of this machine in $bad"

# Documents link to what is installed.
while IFS=: read -r document link; do
  target=${link#'('}; target=${target%%'#'*}
  case $target in http* | '') continue ;; esac
  [ -e "$(dirname "$document")/$target" ] || fail "$document links to $target, which is not there"
done < <(grep -roE '\]\([^) ]+' --include='*.md' "$prefix/share/doc" | sed 's/:\](/:(/')

# A program of somebody else, by find_package ...
export TESSERA_LIBTORCH; TESSERA_LIBTORCH=$(sed -n 's/^TesseraTorch_ROOT_INCLUDE:PATH=\(.*\)\/include$/\1/p' "$build/CMakeCache.txt")
cmake -S "$here/consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/consumer" >>"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2; fail "find_package(tessera) consumer"; }
[ "$("$work/consumer/consumer")" = bf16 ] || fail "the find_package consumer does not run"
if cmake -S "$here/consumer" -B "$work/none" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCOMPONENT=nosuchcomponent >"$work/log" 2>&1; then
  fail "find_package accepts the component nosuchcomponent"
fi
grep -q 'no component nosuchcomponent' "$work/log" &&
  ! cmake -S "$here/consumer" -B "$work/both" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" "-DCOMPONENT=model;nosuch" >"$work/log" 2>&1 &&
  grep -q 'no component nosuch;' "$work/log" || fail "find_package does not name the missing component"
# A LibTorch that is named is not replaced by another; what is optional may lack it.
optional() {
  cmake -S "$here/consumer" -B "$work/optional" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" "$@" >"$work/log" 2>&1
}
if TESSERA_LIBTORCH=/nonexistent optional -DCOMPONENT=model; then fail "TESSERA_LIBTORCH=/nonexistent finds a LibTorch"; fi
grep -q 'TESSERA_LIBTORCH=/nonexistent' "$work/log" || fail "the LibTorch that is missing is not named"
TESSERA_LIBTORCH=/nonexistent optional -DCOMPONENT=base -DOPTIONAL=model || { tail "$work/log" >&2; fail "an optional component is required"; }
grep -q 'model: not found' "$work/log" || fail "a component without its LibTorch counts as found"
# ... and by pkg-config.
export PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
# shellcheck disable=SC2046
c++ -std=c++20 "$here/consumer/main.cpp" -o "$work/by_pc" $(pkg-config --cflags --libs tessera) "-Wl,-rpath,$prefix/$libdir" -Wl,--allow-shlib-undefined
[ "$("$work/by_pc")" = bf16 ] || fail "the pkg-config consumer does not run"
[ "$(pkg-config --modversion tessera)" = "$version" ] || fail "tessera.pc has another version"

# The module, where there is a module command.
if [ -r /usr/share/lmod/lmod/init/bash ]; then
  set +eu; . /usr/share/lmod/lmod/init/bash; module use "$prefix/share/modulefiles"; module load "tessera/$version"; set -eu
  [ "${PATH%%:*}" = "$prefix/bin" ] || fail "module load tessera puts '${PATH%%:*}' first on PATH"
  [ -d "${TESSERA_SHARE:-}/recipes" ] || fail "TESSERA_SHARE=${TESSERA_SHARE:-} has no recipes"
  case $MANPATH in "$prefix/share/man:"*) ;; *) fail "MANPATH is $MANPATH" ;; esac
  set +eu; module unload tessera; mkdir -p "$work/site/tessera"
  ln -s "$prefix/share/modulefiles/tessera/$version" "$work/site/tessera/linked"
  module use "$work/site"; module load tessera/linked; set -eu
  [ "${PATH%%:*}" = "$prefix/bin" ] || fail "a link to the modulefile puts '${PATH%%:*}' first on PATH"
  case $MANPATH in *::* | *:) ;; *) fail "MANPATH=$MANPATH hides the system's pages" ;; esac
fi

tessera=$prefix/bin/tessera
[ -x "$tessera" ] || exit 0
"$tessera" --version | grep -qF "$version" || fail "tessera --version does not say $version"
for page in man1/tessera.1 man5/tessera-config.5; do [ -s "$prefix/share/man/$page" ] || fail "no page share/man/$page"; done

# Four ranks train from the moved prefix.
cd "$work"
"$here/../jobs/tiny_assets.sh" "$tessera" assets
"$tessera" launch -n 4 -- train "$here/../jobs/tiny.toml" --job.dump_folder run >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; fail "a run on 4 ranks"; }
[ "$(wc -l <run/metrics.jsonl)" = 4 ] || fail "the run on 4 ranks has $(wc -l <run/metrics.jsonl) steps, not 4"
# The sample text and its tokenizer come with the prefix.
"$tessera" train --training.dataset c4_test --training.steps 1 --training.seq_len 32 --training.local_batch_size 1 \
  --training.mixed_precision_param float32 --job.dump_folder sample >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; fail "a run on the sample text"; }
[ "$(grep -c "$prefix/share/tessera/datasets/c4_test" sample/config.toml)" = 2 ] || fail "the sample text is not that of the prefix"
echo "installed, moved and used: $prefix"
