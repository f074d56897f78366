"""Secrets: texts that look like one, texts that do not, and the text that is left."""

from __future__ import annotations

import re

import pytest

from codespec.rules.secrets import (
    find,
    in_secret,
    masked,
    secret_name,
    spans_left,
    without_secrets,
)
from codespec.rules.secrets.gitleaks import load, translated
from tests import planted

TOKEN = "ghp_" + "Ab3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"


@pytest.mark.parametrize(("label", "secret"), planted.forms(7).items())
def test_known_forms_are_cut_wherever_they_stand(label: str, secret: str) -> None:
    for text in (
        f"f('{secret}')\n",
        f"# see {secret}\n",
        f'{{"a": ["{secret}"]}}',
        f"x: {secret}\r\n",
    ):
        left = without_secrets(text)
        assert secret[:24] not in left
        assert secret[-16:] not in left
        assert left.startswith(text[: text.index(secret)][:2])


@pytest.mark.parametrize(("label", "given"), planted.assignments(7).items())
def test_values_given_to_names_are_cut_and_the_names_stay(
    label: str, given: tuple[str, str]
) -> None:
    secret, text = given
    assert without_secrets(text) == text.replace(secret, "")


@pytest.mark.parametrize(
    "text",
    [
        f"T = 'ghp_' + '{TOKEN[4:]}'\n",
        f"T = '{TOKEN[4:]}'  # ghp_\n",
        f"T = 'ghp%5F{TOKEN[4:]}'\n",
        f"T = 'ghp_\\\n{TOKEN[4:]}'\n",
        f"T='x{TOKEN}'\n",
        f"T='{TOKEN}abcdefgh'\n",
        f"U = 'https://{TOKEN}@github.com/x/y'\n",
        f"# é ü 漢字 İİİ\nT = '{TOKEN}'\n",
    ],
)
def test_however_a_token_is_written(text: str) -> None:
    assert TOKEN[8:32] not in without_secrets(text)
    assert without_secrets(text).startswith(text[:2])


@pytest.mark.parametrize(
    "text",
    [
        'password = "hunter2!Correct9"',
        "DB_PASSWORD=Tr0ub4dor&3x",
        "pwd: 'S0mmer!2024'",
        '{"auths": {"x": {"auth": "dXNlcjpwYXNzd29yZDE5"}}}',
        "curl -u admin:S3cr3tPassw0rd https://host/",
        '{"kty": "RSA", "d": "%s"}' % ("aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 3),
        "postgres://admin:CkCzlityiJuJpz@db/x",
        "postgres://admin:p@ssutJUYF7Z@db/x",
        "https://x.blob.example/c?sv=1&sig=9TWkbdXO%2FA3A%2Be8BP8aHLr4AK%2BxzNYRcmLSysw0KoVs%3D",
        f"t = 'eyJhbGciOiJSU0EifQ.{TOKEN[4:]}.abc.{TOKEN[4:]}.def'",
        f"Client('AKIAQ7RZK2MX5VJ4TL3N', '{TOKEN[4:]}/k1X')",
        "//npm.example.org/:_authToken=a038d5a1-e3a6-5948-88e4-98e656e46a5c",
    ],
)
def test_what_people_make_up(text: str) -> None:
    assert find(text)


@pytest.mark.parametrize(
    "notation",
    [
        'password = (\n    "{}"\n)',
        'password = \\\n    "{}"',
        "password: >-\n  {}\n",
        "password: |\n  {}\n",
        'passwords = [\n    "{}",\n]',
        "passwords:\n  - {}\n",
        "machine h\n  login u\n  password {}\n",
        "ENV DB_PASSWORD {}\n",
        "tool --password {} file",
        '#define WIFI_PASSWORD "{}"',
        "ALTER ROLE a WITH PASSWORD '{}'",
        "CREATE USER a IDENTIFIED BY '{}'",
        'std::string password{{"{}"}};',
        'password <- "{}"',
        ':password "{}"',
        '(setq password "{}")',
        '$p = ConvertTo-SecureString "{}" -AsPlainText',
        "mysql -u root -p{} db",
        "sshpass -p {} ssh host",
        "htpasswd -b users admin {}",
    ],
)
def test_passwords_in_many_notations(notation: str) -> None:
    for password in ("Summer2024!", "Tr0ub4dor&3x"):
        assert password not in without_secrets(notation.format(password))


@pytest.mark.parametrize("joint", ['" \\\n    "', '" +\n    "', '"\n    "', '" . "'])
def test_a_value_in_parts_is_cut_whole(joint: str) -> None:
    first, second = TOKEN[4:22], TOKEN[20:]
    assert second not in without_secrets(f'api_key = "{first}{joint}{second}"\n')


@pytest.mark.parametrize(
    "begun",
    ["LTAI5tQ7", "pnu_M8dpUS", "dt0c01.FBVTM2", "cmVmdGtuf51z", "key-5f3a9c", "fm2_2nkjTP/8x"],
)
def test_a_token_is_known_while_it_is_typed(begun: str) -> None:
    assert in_secret(f'x = open("{begun}')


@pytest.mark.parametrize(
    "before",
    [
        "Client('AKIAQ7RZK2MX5VJ4TL3N', '",
        f'api_key = "{TOKEN[4:]}" + "',
        f"<RSAKeyValue><Modulus>{TOKEN}</Modulus><D>",
    ],
)
def test_what_belongs_to_a_secret_is_one_while_it_is_typed(before: str) -> None:
    assert in_secret(before + TOKEN[10:24])


@pytest.mark.parametrize(
    "text",
    [
        "token = next_token(text)",
        r'assert(x.contains("secret-key = \"k3.secret.")); f(a1, b2)',
        "password = self.password_field_2",
        'password_label = "Enter your new password"',
        'token_url = "https://example.com/oauth2/v1/token"',
        "api_key = os.environ['STRIPE_API_KEY_2']",
        'password: "${DB_PASSWORD_1}"',
        'password = "changeme123"',
        'secret = "xxxxxxxxxxxxxxxxxxxx"',
        "tokens = tokenizer.encode('abc123def456')",
        "PASSWORD_HASHER = 'django.contrib.auth.hashers.PBKDF2PasswordHasher'",
        'integrity = "sha512-abcdEFGH0123abcdEFGH0123abcdEFGH0123abcdEFGH0123"',
        "commit = '3b18e512dba79e4c8300dd08aeb37f8e728b8dad'",
        "https://github.com/owner/name@v1.2.3",
        "http://user:pass@host/",
        'grpc.Creds(credentials.NewClientTLSFromCert(nil, ""))',
        "public_key = 'c4e448d652a961fda0ab64f882c8c161d5985f805d45d80c9ddca1'",
        "def test_npm_version_when_the_patch_level_is_0_and_there_is_one():",
        "AccessKeyId: AKIAIOSFODNN7EXAMPLE",
        "sort_key = 'a8f5f167f44f4964e6c998dee827110c'",
        "csrf_token = 'a8f5f167f44f4964e6c998dee827110c'",
        "# for older versions pass `eval_str=True` to it",
        "request_token = 'a038d5a1-e3a6-5948-88e4-98e656e46a5c'",
        "http://user:correct-horse@host/",
        'print("password", "is needed here")',
        "-----BEGIN PUBLIC KEY-----",
    ],
)
def test_words_and_place_holders_stay(text: str) -> None:
    assert find(text) == []


def test_keys_are_cut_to_their_last_line() -> None:
    key = planted.private_key(3)
    assert without_secrets(f"a = 1\n{key}\nb = 2\n") == "a = 1\n\nb = 2\n"
    headless = "\n".join(key.split("\n")[:-1])
    assert without_secrets(f"a = 1\n{headless}\n\n# end of it\n").startswith("a = 1\n")
    for line in key.split("\n"):
        assert line not in without_secrets(f"a = 1\n{headless}\n\n# end of it\n")
    public = key.replace("RSA PRIVATE", "PUBLIC")
    assert without_secrets(public) == public


def test_places_are_bytes_of_bytes_and_characters_of_text() -> None:
    text = f"# é漢\nT = '{TOKEN}'\n"
    ((start, end, rule),) = find(text)
    assert text[start:end] == TOKEN
    ((first, last, same),) = find(text.encode())
    assert text.encode()[first:last].decode() == TOKEN
    assert rule == same
    hidden = masked(text.encode(), find(text.encode()))
    assert hidden == text.encode().replace(TOKEN.encode(), b"*" * len(TOKEN))


def test_lines_stay_where_they_are_behind_a_mask() -> None:
    text = f"a = 1\n{planted.private_key(5)}\nb = 2\n".encode()
    hidden = masked(text, find(text))
    assert [len(line) for line in hidden.split(b"\n")] == [len(n) for n in text.split(b"\n")]
    assert hidden.endswith(b"\nb = 2\n")


def test_what_is_left_of_a_stretch() -> None:
    text = f"a = '{TOKEN}'\nb = '{TOKEN}'\n"
    found = find(text)
    assert [text[a:b] for a, b in spans_left(found, 0, len(text))] == ["a = '", "'\nb = '", "'\n"]
    assert list(spans_left(found, 8, 20)) == []
    assert [text[a:b] for a, b in spans_left(found, 2, 7)] == ["= '"]
    assert list(spans_left([], 3, 3)) == []


@pytest.mark.parametrize("path", planted.NAMES)
def test_files_that_hold_nothing_else(path: str) -> None:
    assert secret_name(path) or path.split("/")[0] in (".kube", ".azure")


@pytest.mark.parametrize(
    "path",
    [
        *("main.py", "passwords.py", "password_reset.py", "token.go", "tokens.ts", "vault.go"),
        *("secrets.py", "kubeconfig.go", "config.json", "docker/config.json", "application.yml"),
        *("credentials_test.go", "api_key.rb", "htpasswd.c", "environment.yml", "keys.md"),
        *("forgot-password.html", "change_password.vue", "reset_password.erb", "docs/secrets.md"),
    ],
)
def test_files_of_code_stay(path: str) -> None:
    assert not secret_name(path)


def test_every_rule_of_gitleaks_can_be_read() -> None:
    rules = load()
    assert len(rules) > 150
    for rule in rules:
        assert isinstance(rule.pattern, re.Pattern)
        assert not any(is_secret for *_, is_secret in rule.matches("", 0, 0, 0))


@pytest.mark.parametrize(
    ("expression", "fits", "fails"),
    [
        (r"a(?i)b", "aB", "AB"),
        (r"(?:(?i)a|b)c", "BC".lower().replace("b", "B"), "BC"),
        (r"x[(?i)]\z", "x?", "X?"),
        (r"(?i:a)(?-i:b)", "Ab", "AB"),
        (r"[[:alnum:]]{2}", "a1", "-1"),
    ],
)
def test_expressions_of_go(expression: str, fits: str, fails: str) -> None:
    pattern = re.compile(translated(expression))
    assert pattern.fullmatch(fits)
    assert not pattern.fullmatch(fails)


@pytest.mark.parametrize("secret", [value for value, _ in planted.assignments(7).values()])
def test_a_value_given_to_a_name_is_one_from_its_first_character(secret: str) -> None:
    for n in range(1, len(secret)):
        assert in_secret(f"x = 1\npassword = '{secret[:n]}")


@pytest.mark.parametrize(("label", "secret"), planted.forms(7).items())
def test_a_known_form_is_known_early(label: str, secret: str) -> None:
    """Behind its prefix, of which the number of a bot is one, a few characters tell nothing."""
    other = planted.forms(8)[label]
    n_fixed = next(i for i, (a, b) in enumerate(zip(secret, other, strict=False)) if a != b)
    if label == "telegram":
        n_fixed = secret.index(":") + 1
    for n in range(n_fixed + 8, len(secret)):
        assert in_secret(f"x = open('{secret[:n]}")


def test_what_follows_the_number_of_a_bot_is_no_word() -> None:
    """Five small letters may spell a part of one by chance."""
    assert in_secret("# 695159932:AAwfina")
    assert not in_secret("# npm_wfina")


def test_a_key_is_one_in_every_line() -> None:
    key = planted.private_key(7)
    begun, done = len(key.split("\n")[0]) + 1, key.index("\n-----END")
    for n in range(begun + 1, done, 7):
        assert in_secret(f'KEY = """{key[:n]}')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1",
        "def connect(host):\n    return host.op",
        "    token = ",
        "tokens = tokenizer.enc",
        "if password.st",
        "# the password is chec",
        "import npm_config",
        'url = "https://',
        'url = "http://localhost:80',
        'url = "http://127.0.',
        "task-",
        f"T = '{TOKEN}'",
    ],
)
def test_code_is_no_secret_that_is_typed(text: str) -> None:
    assert not in_secret(text)
