# Built in two steps, so that the image holds what runs and not what builds. `make container` replays every RUN
# line in a clean folder.
FROM python:3.13-slim AS build
WORKDIR /src
COPY requirements.txt requirements-build.txt ./
RUN python -m venv /opt/build
RUN /opt/build/bin/python -m pip install --no-cache-dir --require-hashes -r requirements-build.txt
# Without pip: nothing is installed in what runs.
RUN python -m venv --without-pip /opt/stallbudget
RUN /opt/build/bin/python -m pip --python /opt/stallbudget/bin/python install --no-cache-dir --require-hashes -r requirements.txt
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY service service
COPY migrations migrations
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --wheel-dir /opt/wheels .
RUN /opt/build/bin/python -m pip --python /opt/stallbudget/bin/python install --no-cache-dir --no-deps --no-index --find-links /opt/wheels stallbudget
RUN mkdir /opt/data

FROM python:3.13-slim
COPY --from=build /opt/stallbudget /opt/stallbudget
# SQLite's file, where no other database is named: the one place that is written to, so that the rest may be read-only.
COPY --from=build --chown=10001:10001 /opt/data /data
VOLUME /data
ENV PATH=/opt/stallbudget/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    STALLBUDGET_HOST=0.0.0.0 \
    STALLBUDGET_DATABASE_URL=sqlite:////data/stallbudget.db
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ.get(\"STALLBUDGET_PORT\") or 8000}/readyz', timeout=4)"]
CMD ["stallbudget", "serve"]
