# What ./rlhf-run and ./run-tests share: bring a fresh Debian 12 or Ubuntu machine to a finished Release build.
# Every step is skipped when it is already done, and can be interrupted and called again.
# Sourced with $here set to the root of the checkout. Everything but the Debian packages stays inside the checkout, or in the folder
# that SLUICE_DEPS names: several checkouts may share one. Then .deps is a link to it. Whoever changes it holds its lock alone, whoever
# builds with it holds the lock together with others, and a version of LibTorch that another checkout needs is never replaced.

torch_version=2.11.0
torch_wheels=(torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)  # enough for the CPU, without what they depend on
packages=(g++ cmake ninja-build ccache mold pkg-config python3 libtbb-dev libtomlplusplus-dev libcli11-dev libspdlog-dev
          nlohmann-json3-dev libvalijson-dev libonig-dev libutf8proc-dev zlib1g-dev libzstd-dev libcurl4-openssl-dev libcpp-httplib-dev
          libgtest-dev libgmock-dev)
build=$here/build/release
started=$SECONDS

say() { printf '[%4d s] %s\n' $((SECONDS - started)) "$*" >&2; }

# One line of what is wrong and one command to run by hand.
give_up() { printf 'error: %s\n       by hand: %s\n' "$1" "$2" >&2; exit 1; }

missing_packages() {
  local installed package
  installed=" $(dpkg-query -W -f '${Package} ${Status}\n' "$@" 2>/dev/null | awk '$NF == "installed" { printf "%s ", $1 }')"
  for package in "$@"; do [[ $installed == *" $package "* ]] || printf '%s ' "$package"; done
}

install_packages() {
  local missing sudo=
  command -v dpkg-query >/dev/null || give_up "this is not a Debian or Ubuntu machine: install the packages' counterparts" "see packages= in cmake/set-up.sh"
  missing=$(missing_packages "$@")
  [[ -z $missing ]] && return
  [[ $EUID -eq 0 ]] || sudo=sudo
  local command="$sudo apt-get install -y --no-install-recommends $missing"
  [[ -z $sudo ]] || command -v sudo >/dev/null || give_up "packages are missing, and there is no sudo to install them" "(as root) apt-get install -y $missing"
  say "step 1 of 4: installing Debian packages: $missing"
  mkdir -p "$here/.deps"
  { $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive ${command#sudo }; } \
    >"$here/.deps/apt.log" 2>&1 || give_up "packages could not be installed (no network, or no right? .deps/apt.log tells)" "$command"
}

version_of_torch_in() { sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$1/version.py" 2>/dev/null; }

# Makes .deps a link to the folder $1.
use_deps() {
  mkdir -p "$1" 2>/dev/null || give_up "the folder $1 for .deps cannot be made" "mkdir -p $1"
  local wanted; wanted=$(cd "$1" && pwd -P)
  [[ -d $here/.deps && $(cd "$here/.deps" && pwd -P) == "$wanted" ]] && return
  if [[ -L $here/.deps ]]; then rm "$here/.deps"; fi
  if [[ -d $here/.deps ]]; then
    rmdir "$here/.deps" 2>/dev/null || give_up "SLUICE_DEPS names another folder than .deps of this checkout, which is not empty" "rm -r $here/.deps (or move what is in it to $wanted)"
  fi
  ln -s "$wanted" "$here/.deps"
  rm -f "$build/build.ninja"  # was configured with another LibTorch
}

# The one that cmake/FindTorch.cmake finds; empty: none.
torch_folder() {
  local folder
  for folder in "${Torch_ROOT:-}" "$(python3 -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')" 2>/dev/null)" \
                "$here/.deps/python/torch" "$here/.deps/python-$torch_version/torch"; do
    if [[ -n $folder && $(version_of_torch_in "$folder") == "$torch_version" ]]; then printf '%s' "$folder"; return; fi
  done
}

# With --cuda, or where there is a GPU, LibTorch comes with all that its CUDA part needs.
wants_cuda=false
[[ -e /dev/nvidiactl ]] && wants_cuda=true

# cuDNN stands for all that the CUDA part needs: the small set of wheels has none.
torch_suffices() {
  [[ -n $1 ]] && { ! $wants_cuda || compgen -G "$1/../nvidia/cudnn/lib/libcudnn.so.*" >/dev/null; }
}

fetch_torch() {
  local there; there=$(torch_folder)
  torch_suffices "$there" && return
  [[ -z $there || $there == "$here/.deps/"* ]] || give_up "LibTorch in $there lacks what its CUDA part needs" "python3 -m pip install torch==$torch_version (beside it)"
  python3 -m pip --version >/dev/null 2>&1 || install_packages python3-pip
  local name=python
  [[ $(version_of_torch_in "$here/.deps/python/torch") == "$torch_version" || ! -d $here/.deps/python ]] || name=python-$torch_version
  local part=$here/.deps/$name.part wheels=(--no-deps "${torch_wheels[@]}") size="0.5 GB to load, 1.3 GB on the disk"
  if $wants_cuda; then wheels=("torch==$torch_version") size="1.8 GB to load, 4.6 GB on the disk, for the GPU"; fi
  local command="python3 -m pip install --target .deps/$name ${wheels[*]}"
  say "step 2 of 4: fetching LibTorch $torch_version into .deps/ ($size)"
  rm -rf "$part"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target "$part" "${wheels[@]}" \
    >"$here/.deps/pip.log" 2>&1 || give_up "LibTorch could not be fetched (no network, or a full disk? .deps/pip.log tells)" "$command"
  rm -rf "$here/.deps/$name"
  mv "$part" "$here/.deps/$name"
}

# With --parquet what reads Parquet and Arrow files: headers and two libraries of pyarrow's wheel, of the version and with the hash that
# cmake/pyarrow.txt says. They need no Python, so it is that wheel for any.
wants_parquet=false

pyarrow_folder() { printf '%s' "$here/.deps/pyarrow-$(sed -n 's/^pyarrow==\([0-9.]*\).*/\1/p' "$here/cmake/pyarrow.txt")"; }

fetch_pyarrow() {
  local there part package; there=$(pyarrow_folder) part=$there.part package=$part/pyarrow
  [[ -d $there ]] && return
  python3 -m pip --version >/dev/null 2>&1 || install_packages python3-pip
  local options=(--no-deps --require-hashes --only-binary :all: --implementation cp --python-version 3.11 --platform "manylinux_2_28_$(uname -m)")
  say "fetching pyarrow into .deps/ for Parquet (55 MB to load, 75 MB on the disk)"
  rm -rf "$part"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target "$part" "${options[@]}" -r "$here/cmake/pyarrow.txt" \
    >"$here/.deps/pip.log" 2>&1 || give_up "pyarrow could not be fetched (no network, or a full disk? .deps/pip.log tells)" \
    "python3 -m pip install --target .deps/${there##*/} ${options[*]} -r cmake/pyarrow.txt"
  mkdir "$part/kept"
  mv "$package"/include "$package"/libarrow.so.[0-9]* "$package"/libparquet.so.[0-9]* "$package"/../*.dist-info "$part/kept"
  rm -rf "$package"
  mv "$part/kept" "$package"
  find "$part" -mindepth 1 -maxdepth 1 ! -name pyarrow -exec rm -rf {} +
  mv "$part" "$there"
}

# How long a step of the build takes on one core: compiled, or found in the compiler cache. Seconds, seen on machines of 2026.
step_seconds=8
cached_step_seconds=0.5

# How many steps the build has, once ninja has begun with them; before that it may configure anew, which counts apart.
steps_of_build() { grep -vE 'Re-checking|Re-running' "$build/build.log" | sed -n 's|^\[[0-9]*/\([0-9]*\)\].*|\1|p' | head -n 1; }

# Whether the compiler cache holds about as much as a build of so many steps makes. It does not know of which checkout.
cache_is_warm() {
  local files; files=$(ccache --print-stats 2>/dev/null | awk '$1 == "files_in_cache" { print $2 }')
  ((${files:-0} * 2 >= $1 * 3))  # two files for each that was compiled
}

# "about 12 min" for $1 seconds.
about() { awk -v s="$1" 'BEGIN { if (s < 90) printf "about %d s", s + 1; else printf "about %d min", s / 60 + 0.5 }'; }

# What the build will take, from what is seen: its steps, the cores, the compiler cache.
forecast() {
  local steps=${1:-0} cores; cores=$(nproc)
  local text="step 4 of 4: building, $steps steps" each=$step_seconds why="nothing is in the compiler cache yet"
  if ((steps < 20)); then say "$text"; return; fi
  if cache_is_warm "$steps"; then each=$cached_step_seconds why="if the compiler cache has them, as its size says"; fi
  say "$text: $(about "$(awk -v n="$steps" -v c="$cores" -v s=$each 'BEGIN { print n * s / c }')") on $cores cores, $why"
}

# Where ninja's last line is, "[34/345] ...": on a terminal again and again in one line, else every tenth of the way.
show_progress() {
  local line step all left; line=$(tail -n 1 "$build/build.log")
  [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || return 0
  step=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
  left=$(about "$(((SECONDS - build_started) * (all - step) / (step > 0 ? step : 1)))")
  if [[ -t 2 ]]; then
    printf '\r\033[K%.100s' "$step of $all steps, $left left: ${line##* }" >&2
  elif ((step * 10 / all > shown_tenths)); then
    shown_tenths=$((step * 10 / all))
    say "$step of $all steps, $left left"
  fi
}

# build TARGET...: configures when needed; ninja itself finds what changed. One build of a checkout at a time.
build_targets() {
  mkdir -p "$build"
  exec 8>"$build/lock"
  flock -n 8 || { say "waiting for another build of this checkout to end"; flock 8; }
  if [[ ! -f $build/build.ninja ]]; then
    say "step 3 of 4: configuring"
    (cd "$here" && cmake --preset release) >"$build/configure.log" 2>&1 || { tail -n 20 "$build/configure.log" >&2; give_up "cmake failed" "cmake --preset release"; }
  fi
  local build_started=$SECONDS shown_tenths=0
  NINJA_STATUS='[%f/%t] ' ninja -C "$build" "$@" >"$build/build.log" 2>&1 &
  local ninja=$! moment
  trap 'kill "$ninja" 2>/dev/null; exit 130' INT TERM  # the shell keeps Ctrl-C from what runs in the background
  # Nothing to build takes a fraction of a second and needs no words.
  for moment in {1..15}; do kill -0 "$ninja" 2>/dev/null || break; sleep 0.1; done
  if kill -0 "$ninja" 2>/dev/null; then
    local steps=
    while kill -0 "$ninja" 2>/dev/null; do
      if [[ -n $steps ]]; then
        show_progress
      else
        steps=$(steps_of_build) || true
        if [[ -n $steps ]]; then forecast "$steps"; fi
      fi
      sleep 0.3
    done
    if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
    say "build ended"
  fi
  local status=0
  wait "$ninja" || status=$?
  trap - INT TERM
  exec 8>&-
  [[ $status -eq 0 ]] && return
  grep -aE 'error|FAILED|undefined' "$build/build.log" | head -n 20 >&2 || true
  give_up "the build failed (build/release/build.log tells)" "cmake --build --preset release"
}

# lock_deps HOW WHAT: the lock of .deps on descriptor 9, alone (-x) or together with others (-s).
lock_deps() {
  flock -n "$1" 9 && return
  say "waiting for another set-up to end, which $2"
  flock "$1" 9
}

# set_up TARGET...: what several callers, of one checkout or of several with one .deps, may do at the same time.
set_up() {
  if [[ -n ${SLUICE_DEPS:-} ]]; then use_deps "$SLUICE_DEPS"; fi
  mkdir -p "$here/.deps"
  exec 9>"$here/.deps/lock"
  # A newer checkout may need more packages than those that are there, and so may another machine with the same folder.
  local wanted; wanted="$(uname -n) ${packages[*]} torch $torch_version cuda $wants_cuda"
  if [[ ! -x $build/cli/rlhf-run ]] || ! grep -qsxF "$wanted" "$here/.deps/installed"; then
    lock_deps -x "uses or changes .deps"
    install_packages "${packages[@]}"
    fetch_torch
    grep -qsxF "$wanted" "$here/.deps/installed" || printf '%s\n' "$wanted" >>"$here/.deps/installed"
  fi
  if $wants_parquet && [[ ! -d $(pyarrow_folder) ]]; then
    lock_deps -x "uses or changes .deps"
    fetch_pyarrow
  fi
  # A build that was configured without it.
  if $wants_parquet && ! grep -qs sluice_columnar "$build/build.ninja"; then rm -f "$build/build.ninja"; fi
  lock_deps -s "changes .deps"
  build_targets "$@"
  exec 9>&-
}
