"""Names of files and folders that hold nothing but secrets."""

from __future__ import annotations

import re
from functools import lru_cache

SECRET_FOLDERS = frozenset((".ssh", ".aws", ".azure", ".gnupg", ".kube", ".password-store"))

_CODE = (
    r"(?:pyi?|[cm]?[jt]sx?|go|rs|[ch]|cc|[ch]pp|[ch]xx|hh|java|kt|cs|rb|php|swift|lua|md|rst|html?)"
)
_DATA = r"(?:ya?ml|json5?|toml|ini|txt|properties|xml|conf|cfg|csv|db|env|enc|bak|old|plist)"
_WHOSE = r"(?:app|prod(?:uction)?|dev|stag(?:e|ing)|test|local|client|server|db|my|user|admin|k8s|)"
_SECRET_NAME = re.compile(
    rf"""\.env.* | .*\.env | .*\.(pem|key|p12|pfx|pkcs12|pkcs8|p8|jks|keystore|kdbx?|ppk|gpg|ovpn)
    | .*\.(secrets?|agekey|keytab|jwk|passwd|htpasswd) | .*\.private\.asc | hudson\.util\.Secret
    | id_(rsa|dsa|ecdsa|ed25519|xmss).* | [._]netrc | \.npmrc | \.pypirc | \.?pgpass(\.conf)?
    | \.?htpasswd(\.{_DATA})? | \.[a-z]+_history | \.git-credentials | \.dockercfg | \.boto
    | \.s3cfg | \.my\.cnf | \.yarnrc(\.yml)? | \.?sentryclirc | \.?ftpconfig | \.remote-sync\.json
    | \.?sftp(-config)?\.json | \.?esmtprc | \.?msmtprc | \.?rclone\.conf | \.terraformrc
    | kube[-_]?config(\.{_DATA})? | .*[-_.]kubeconfig | \.?vault[-_]pass.*
    | (ansible[-_])?vault\.(ya?ml|json) | wg\d+\.conf | wireguard.*\.conf
    | ({_WHOSE}[-_.])?(passwords?|passwds?|passphrases?)(\.{_DATA})?
    | ({_WHOSE}[-_.])?(secrets?|api[-_]?keys?|(access|auth|api|refresh)[-_]?tokens?)(\.{_DATA})+
    | \.?token(\.(txt|json))? | access_?tokens?(\.db)?\.json | \.(token|secret)s?
    | .*\.tfvars(\.json)? | .*\.tfstate(\..*)?
    | (client_secret|service[-_]account|firebase[-_]adminsdk|gcp[-_]key).*\.json
    | recentservers\.xml | filezilla\.xml | \.?keepass.*\.(xml|csv)
    | ([\w-]*[-_.])?credentials?(?!.*\.{_CODE}$)([-_.].*)?""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
# Folders in which a tool keeps a file whose name alone says nothing.
_SECRET_PATH = re.compile(
    r"(?:.*/)?(?:\.docker/config\.json|\.config/gh/hosts\.yml|\.?gcloud/[^/]*(?:token|cred)[^/]*"
    r"|\.gem/credentials|\.cargo/credentials|\.config/hub|rclone/rclone\.conf)",
    re.IGNORECASE | re.DOTALL,
)


@lru_cache(4096)
def secret_name(path: str) -> bool:
    """True if a file of this name is expected to hold nothing but secrets.

    path: a name, or a path with `/`, of which the last two or three components count.
    """
    name = path.rpartition("/")[2]
    return bool(_SECRET_NAME.fullmatch(name) or _SECRET_PATH.fullmatch(path))
