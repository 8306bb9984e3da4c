# Not built on the development machine, which has no container engine; see deploy/README.md.
FROM debian:12 AS build
COPY . /src
WORKDIR /src
RUN scripts/install.sh && scripts/build.sh release kube-shunt

FROM debian:12-slim
RUN apt-get update -qq && \
    apt-get install -y -qq --no-install-recommends \
      libmnl0 libnftnl11 libfmt9 libspdlog1.10 libyaml-cpp0.7 libssl3 zlib1g && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/bin/kube-shunt /usr/local/bin/kube-shunt
ENTRYPOINT ["/usr/local/bin/kube-shunt"]
