# What ./rlhf-run and ./run-tests share: bring a fresh Debian 12 or Ubuntu machine to a finished Release build.
# Every step is skipped when it is already done, and can be interrupted and called again.
# Sourced with $here set to the root of the checkout. Everything but the Debian packages stays inside the checkout.

torch_version=2.11.0
torch_wheels=(torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)  # enough for the CPU, without what they depend on
packages=(g++ cmake ninja-build ccache mold pkg-config python3 libtbb-dev libtomlplusplus-dev libcli11-dev libspdlog-dev
          nlohmann-json3-dev libvalijson-dev libonig-dev libutf8proc-dev zlib1g-dev libcurl4-openssl-dev libgtest-dev libgmock-dev)
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
  say "installing Debian packages: $missing"
  mkdir -p "$here/.deps"
  { $sudo env DEBIAN_FRONTEND=noninteractive apt-get update -q && $sudo env DEBIAN_FRONTEND=noninteractive ${command#sudo }; } \
    >"$here/.deps/apt.log" 2>&1 || give_up "packages could not be installed (no network, or no right? .deps/apt.log tells)" "$command"
}

version_of_torch_in() { sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "$1/version.py" 2>/dev/null; }

# The one that cmake/FindTorch.cmake finds; empty: none.
torch_folder() {
  local folder
  for folder in "${Torch_ROOT:-}" "$(python3 -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')" 2>/dev/null)" \
                "$here/.deps/python/torch"; do
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
  [[ -z $there || $there == "$here/.deps/python/torch" ]] || give_up "LibTorch in $there lacks what its CUDA part needs" "python3 -m pip install torch==$torch_version (beside it)"
  python3 -m pip --version >/dev/null 2>&1 || install_packages python3-pip
  local part=$here/.deps/python.part wheels=(--no-deps "${torch_wheels[@]}") size="0.5 GB to load, 1.3 GB on the disk"
  if $wants_cuda; then wheels=("torch==$torch_version") size="1.8 GB to load, 4.6 GB on the disk, for the GPU"; fi
  local command="python3 -m pip install --target .deps/python ${wheels[*]}"
  say "fetching LibTorch $torch_version into .deps/ ($size)"
  rm -rf "$part"
  python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target "$part" "${wheels[@]}" \
    >"$here/.deps/pip.log" 2>&1 || give_up "LibTorch could not be fetched (no network, or a full disk? .deps/pip.log tells)" "$command"
  rm -rf "$here/.deps/python"
  mv "$part" "$here/.deps/python"
}

# build TARGET...: configures when needed; ninja itself finds what changed.
build_targets() {
  mkdir -p "$build"
  if [[ ! -f $build/build.ninja ]]; then
    say "configuring"
    (cd "$here" && cmake --preset release) >"$build/configure.log" 2>&1 || { tail -n 20 "$build/configure.log" >&2; give_up "cmake failed" "cmake --preset release"; }
  fi
  ninja -C "$build" "$@" >"$build/build.log" 2>&1 &
  local ninja=$! moment
  trap 'kill "$ninja" 2>/dev/null; exit 130' INT TERM  # the shell keeps Ctrl-C from what runs in the background
  # Nothing to build takes a fraction of a second and needs no words.
  for moment in {1..15}; do kill -0 "$ninja" 2>/dev/null || break; sleep 0.1; done
  if kill -0 "$ninja" 2>/dev/null; then
    say "building (a first build takes several minutes; build/release/build.log has the details)"
    while kill -0 "$ninja" 2>/dev/null; do
      if [[ -t 2 ]]; then printf '\r\033[K%.100s' "$(tail -n 1 "$build/build.log")" >&2; fi
      sleep 0.3
    done
    if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
    say "build ended"
  fi
  local status=0
  wait "$ninja" || status=$?
  trap - INT TERM
  [[ $status -eq 0 ]] && return
  grep -aE 'error|FAILED|undefined' "$build/build.log" | head -n 20 >&2 || true
  give_up "the build failed (build/release/build.log tells)" "cmake --build --preset release"
}

# set_up TARGET...: one caller at a time, so that two runs started together do not build over each other.
set_up() {
  mkdir -p "$here/.deps"
  exec 9>"$here/.deps/lock"
  flock -n 9 || { say "waiting for another set-up of this checkout to end"; flock 9; }
  # A newer checkout may need more packages than those that are there.
  local wanted="${packages[*]} torch $torch_version cuda $wants_cuda" there=
  [[ -f $here/.deps/installed ]] && there=$(<"$here/.deps/installed")
  if [[ ! -x $build/cli/rlhf-run || $there != "$wanted" ]]; then
    install_packages "${packages[@]}"
    fetch_torch
    printf '%s' "$wanted" >"$here/.deps/installed"
  fi
  build_targets "$@"
  exec 9>&-
}
