# The operator's image. Build: make docker-build IMG=…
# Runs as any non-root user with a read-only root file system: nothing is written at run time.

# By digest of the index of all platforms: a tag can be pushed anew. Another one, such as that of a mirror:
# make docker-build PYTHON_IMAGE=…@sha256:… (docs/threat-model.md: Where it comes from).
ARG PYTHON_IMAGE=python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
# Dependencies first: they change less often than the code. The tools stay in this stage, and so does pip.
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /tools \
 && /tools/bin/pip install --quiet --no-deps --require-hashes -r requirements-build.lock \
 && python -m venv --without-pip /opt/hvpa \
 && /tools/bin/pip --python /opt/hvpa/bin/python install --quiet --no-deps --require-hashes -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY hvpa hvpa
RUN /tools/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /tools/bin/pip --python /opt/hvpa/bin/python install --quiet --no-deps --no-index --find-links /wheels hvpa \
 && /opt/hvpa/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/hvpa/lib

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="hvpa" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/hvpa /opt/hvpa
ENV PATH=/opt/hvpa/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8081 9569
ENTRYPOINT ["hvpa"]
CMD ["run", "--leader-elect"]
