import pytest

from service.settings import PREFIX, AccessMode, SettingError, Settings, is_loopback


@pytest.fixture(autouse=True)
def _without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


def test_without_variables_the_defaults_hold() -> None:
    settings = Settings.from_environment()
    assert settings.database_url == "sqlite+pysqlite:///stallbudget.db"
    assert (settings.host, settings.port, settings.pool_size) == ("127.0.0.1", 8000, 10)
    assert (settings.max_json_bytes, settings.max_document_bytes) == (1024 * 1024, 128 * 1024 * 1024)
    assert (settings.full_scale_low_fraction, settings.full_scale_high_fraction) == (0.95, 1.05)


def test_variables_are_read_and_empty_ones_count_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STALLBUDGET_DATABASE_URL", " postgres://u:secret@db/stallbudget ")
    monkeypatch.setenv("STALLBUDGET_PORT", "9000")
    monkeypatch.setenv("STALLBUDGET_HOST", "")
    settings = Settings.from_environment()
    assert settings.database_url == "postgresql+psycopg://u:secret@db/stallbudget"
    assert (settings.port, settings.host) == (9000, "127.0.0.1")


def test_no_password_is_printed() -> None:
    assert "secret" not in repr(Settings(database_url="postgresql://u:secret@db/stallbudget"))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("PORT", "many", "STALLBUDGET_PORT: Input should be a valid integer"),
        ("PORT", "65536", "STALLBUDGET_PORT: Input should be less than or equal to 65535."),
        ("POOL_SIZE", "0", "STALLBUDGET_POOL_SIZE: Input should be greater than or equal to 1."),
        ("MAX_DOCUMENT_BYTES", "1e99", "STALLBUDGET_MAX_DOCUMENT_BYTES: "),
        ("ACCESS", "open", "STALLBUDGET_ACCESS: "),
        ("FULL_SCALE_LOW_FRACTION", "95", "STALLBUDGET_FULL_SCALE_LOW_FRACTION: "),
        ("FULL_SCALE_HIGH_FRACTION", "nan", "STALLBUDGET_FULL_SCALE_HIGH_FRACTION: "),
        (
            "DATABASE_URL",
            "mysql://u:secret@h/d",
            "STALLBUDGET_DATABASE_URL: mysql is no database that we know",
        ),
        (
            "TRUSTED_PROXIES",
            "10.0.0.1, proxy",
            "STALLBUDGET_TRUSTED_PROXIES: 'proxy' is no address and no network",
        ),
        ("TRUSTED_PROXIES", "*", "STALLBUDGET_TRUSTED_PROXIES: '*' is no address and no network"),
        ("LOG_FORMAT", "xml", "STALLBUDGET_LOG_FORMAT: Input should be 'json' or 'logfmt'."),
        ("METRICS", "public", "STALLBUDGET_METRICS: Input should be 'off', 'loopback', 'private' or 'on'."),
        ("SLOW_SECONDS", "0", "STALLBUDGET_SLOW_SECONDS: Input should be greater than 0."),
        ("READING_PER_MINUTE", "-1", "STALLBUDGET_READING_PER_MINUTE: "),
        ("DATABASE_URL", "sqlite://", "STALLBUDGET_DATABASE_URL: SQLite needs the path of a file"),
    ],
)
def test_a_bad_value_is_a_sentence_that_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(PREFIX + name, value)
    with pytest.raises(SettingError) as caught:
        Settings.from_environment()
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith(".")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "is_own"),
    [
        ("127.0.0.1", True),
        ("127.255.255.254", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),  # noqa: S104 - not bound to
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
        ("", False),
    ],
)
def test_the_loopback_is_known_by_name_and_by_address(host: str, is_own: bool) -> None:
    assert is_loopback(host) is is_own


def test_only_on_the_loopback_a_service_may_be_open_and_not_when_told_so() -> None:
    assert Settings().may_be_open
    assert not Settings(host="10.0.0.1").may_be_open
    assert not Settings(access=AccessMode.KEYS).may_be_open
