# Sluice in Debian 12: docker build -t sluice . && docker run --rm -v "$PWD:/work" sluice run builtin:grpo
# For a GPU, with all that torch needs there: docker build --build-arg TORCH=torch==2.11.0 -t sluice .
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3-pip
WORKDIR /sluice
COPY . .
RUN ./rlhf-run --setup --parquet && python3 -m pip wheel --no-deps --wheel-dir /dist .

FROM debian:12-slim
ARG TORCH="--no-deps torch==2.11.0 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85"
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap ca-certificates python3-venv && rm -rf /var/lib/apt/lists/*
COPY --from=build /dist /dist
COPY --from=build /sluice/cmake/pyarrow.txt /dist/
RUN python3 -m venv /opt/sluice && /opt/sluice/bin/pip install --no-cache-dir ${TORCH} && \
    /opt/sluice/bin/pip install --no-cache-dir --no-deps --require-hashes -r /dist/pyarrow.txt && \
    /opt/sluice/bin/pip install --no-cache-dir --no-deps /dist/*.whl && rm -r /dist
ENV PATH=/opt/sluice/bin:$PATH
WORKDIR /work
ENTRYPOINT ["rlhf-run"]
