"""Secrets to plant in files: made up, of the forms that real ones have."""

from __future__ import annotations

import base64
import json
import random
import string
from typing import NamedTuple

_ALPHANUMERIC = string.ascii_letters + string.digits
_CAPITALS = string.ascii_uppercase + string.digits
_HEX = "0123456789abcdef"
_BASE64 = _ALPHANUMERIC + "+/"


class Planted(NamedTuple):
    """A secret, the file to plant it in, and the file's text."""

    label: str
    secret: str
    path: str
    text: str


def forms(seed: int) -> dict[str, str]:
    """A secret of each known form."""
    r = random.Random(seed)

    def some(n: int, letters: str = _ALPHANUMERIC) -> str:
        return "".join(r.choice(letters) for _ in range(n))

    number = string.digits
    return {
        "aws": "AKIA" + some(16, _CAPITALS),
        "github": "ghp_" + some(36),
        "github-fine": f"github_pat_{some(22)}_{some(59)}",
        "gitlab": "glpat-" + some(20),
        "slack-bot": f"xoxb-{some(12, number)}-{some(12, number)}-{some(24)}",
        "slack-app": f"xapp-1-A{some(10, _CAPITALS)}-{some(13, number)}-{some(64, _HEX)}",
        "slack-hook": f"https://hooks.slack.com/services/T{some(8)}/B{some(8)}/{some(24)}",
        "jwt": f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{some(60)}.{some(43)}",
        "google": "AIza" + some(35),
        "google-oauth": "ya29." + some(60),
        "stripe": "sk_live_" + some(24),
        "stripe-webhook": "whsec_" + some(32),
        "sendgrid": f"SG.{some(22)}.{some(43)}",
        "openai": "sk-proj-" + some(48),
        "anthropic": "sk-ant-api03-" + some(93),
        "npm": "npm_" + some(36),
        "pypi": "pypi-AgEIcHlwaS5vcmc" + some(70),
        "azure-storage": f"AccountKey={some(86, _BASE64)}==",
        "azure-client": f"{some(3)}8Q~{some(34)}",
        "twilio": "SK" + some(32, _HEX),
        "telegram": f"{some(9, number)}:AA{some(33)}",
        "digitalocean": "dop_v1_" + some(64, _HEX),
        "databricks": "dapi" + some(32, _HEX),
        "shopify": "shpat_" + some(32, _HEX),
        "vault": "hvs." + some(90),
        "newrelic": "NRAK-" + some(27, _CAPITALS),
        "grafana": f"glsa_{some(32)}_{some(8, _HEX)}",
        "postgres": f"postgres://admin:{some(20)}@db.internal:5432/prod",
        "mongodb": f"mongodb+srv://u:{some(20)}@c.mongodb.net",
        "redis": f"redis://:{some(20)}@cache:6379",
        "https": f"https://user:{some(20)}@host.example/x.git",
        "sentry": f"https://{some(32, _HEX)}@o1.ingest.sentry.io/1",
        "age": "AGE-SECRET-KEY-1" + some(58, _CAPITALS),
        "artifactory": "AKCp" + some(69),
        "supabase": "sbp_" + some(40, _HEX),
    }


def assignments(seed: int) -> dict[str, tuple[str, str]]:
    """Secrets that only the name says, each with the text that assigns it."""
    r = random.Random(seed)

    def value() -> str:
        return base64.b64encode(r.randbytes(30)).decode()

    texts = {
        "python": "aws_secret_access_key = '%s'",
        "json": '{"AWS_SECRET_ACCESS_KEY": "%s"}',
        "js": 'const c = {secretAccessKey: "%s"};',
        "yaml": "SecretKey: %s",
        "yaml-kebab": "aws-secret-access-key: %s",
        "typed": 'const API_KEY: string = "%s";',
        "go": 'clientSecret := "%s"',
        "call": "define('DB_PASSWORD', '%s');",
        "index": 'os.environ["AUTH_TOKEN"] = "%s"',
        "ruby": 'config.secret_key_base => "%s"',
        "xml": "<password>%s</password>",
        "properties": "spring.datasource.password=%s",
        "shell": "export DEPLOY_TOKEN=%s",
        "connection": 'dsn = "Server=db;User=sa;Password=%s;Timeout=3"',
        "header": 'headers = {"Authorization": "Bearer %s"}',
        "comment": "# the api key is: api_key = '%s'",
    }
    found: dict[str, tuple[str, str]] = {}
    for name, text in texts.items():
        secret = value()
        found[name] = secret, text % secret
    return found


def private_key(seed: int) -> str:
    r = random.Random(seed)
    lines = [base64.b64encode(r.randbytes(48)).decode() for _ in range(4)]
    head = "RSA PRIVATE" + " KEY"
    return "\n".join([f"-----BEGIN {head}-----", *lines, f"-----END {head}-----"])


NAMES = (
    *(".env", "prod.env", "server.pem", "tls.key", "id_ed25519", ".netrc", ".npmrc", ".pgpass"),
    *(".docker/config.json", ".kube/config", "kubeconfig", "kubeconfig.yaml", "secrets.yml"),
    *("credentials", "aws_credentials", "terraform.tfvars", "client_secret_1.json", "gcp-key.json"),
    *("passwords.txt", "password.txt", "vault.yml", "group_vars/all/vault.yml", "wg0.conf"),
    *("rclone.conf", ".azure/accessTokens.json", "token.txt", "api_key.txt", ".sentryclirc"),
    *("htpasswd", "config/master.key", "hudson.util.Secret", "ansible-vault.yml"),
)
"""Files that hold nothing but secrets."""


def workspace(seed: int) -> list[Planted]:
    """Every form in a file of code, every assignment, keys, and files of secrets."""
    planted: list[Planted] = []
    for i, (label, secret) in enumerate(forms(seed).items()):
        code = (
            f"def connect_{i}(host):\n    value_{i} = host.open('{secret}')\n    return value_{i}\n"
        )
        planted.append(Planted(label, secret, f"form_{i}.py", f"import os\n\n\n{code}"))
    for i, (label, (secret, text)) in enumerate(assignments(seed).items()):
        planted.append(Planted(label, secret, f"given_{i}.py", f"before_{i} = 1\n{text}\n"))
    key = private_key(seed)
    for i, (label, text) in enumerate(
        {
            "docstring": f'KEY = """{key}"""\n',
            "escaped": f"KEY = {json.dumps(key)}\n",
            "joined": "const k = " + " +\n  ".join(f"'{line}\\n'" for line in key.split("\n")),
            "indented": "key: |\n" + "".join(f"  {line}\n" for line in key.split("\n")),
            "base64": f'KEY = "{base64.b64encode(key.encode()).decode()}"\n',
        }.items()
    ):
        secret = key.split("\n")[1]
        if label == "base64":
            secret = base64.b64encode(key.encode()).decode()[40:100]
        planted.append(Planted(f"key-{label}", secret, f"key_{i}.py", text))
    r = random.Random(seed)
    for path in NAMES:
        secret = "".join(r.choice(_ALPHANUMERIC) for _ in range(30))
        text = f"some words before {secret} and after\n"
        planted.append(Planted(f"name-{path}", secret, path, text))
    return planted
