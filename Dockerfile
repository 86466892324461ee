# Built in two steps, so that the image holds what runs and not what builds. `make container` replays every RUN
# line in a clean folder.
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.txt requirements-build.txt ./
RUN python -m venv /opt/stallbudget
RUN /opt/stallbudget/bin/python -m pip install --no-cache-dir --require-hashes -r requirements.txt
RUN python -m venv /opt/build
RUN /opt/build/bin/python -m pip install --no-cache-dir --require-hashes -r requirements-build.txt
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY service service
COPY migrations migrations
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /opt/wheels .
RUN /opt/stallbudget/bin/python -m pip install --no-cache-dir --no-deps --no-index --find-links /opt/wheels stallbudget

FROM python:3.13-slim
COPY --from=build /opt/stallbudget /opt/stallbudget
ENV PATH=/opt/stallbudget/bin:$PATH STALLBUDGET_HOST=0.0.0.0
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]
CMD ["stallbudget", "serve"]
