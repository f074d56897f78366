"""Forms of secrets that gitleaks lacks, or knows too narrowly: a token that somebody pasted may be
longer, stand in an address, or be of a newer kind.

Each form has words to look for, in lower case, and an expression whose first group, or all of it,
is the secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from codespec.rules.secrets.values import (
    is_password,
    is_place_holder,
    is_random,
    is_wordy,
    n_changes,
)

MAX_CHARS = 4000
"""Most characters of a match."""
_ENOUGH = 200
"""Characters of a match that are enough to judge it by."""
_BEFORE = 60
_NEAR = 200
_TOKEN = r"[\w-]"
_HEX = "0123456789abcdef"
_BASE64 = r"[A-Za-z0-9+/]"


@dataclass(frozen=True, slots=True)
class SecretForm:
    """One form of secrets. check: True if a matched text is a secret. reach: 0 if a match begins
    with the word; else most characters from the word to the end of a match that holds it or stands
    beside it."""

    name: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    check: Callable[[str], bool]
    reach: int = 0

    def matches(
        self, text: str, start: int, end: int, tried: int
    ) -> Iterator[tuple[int, int, bool]]:
        """(start, end, True if it is a secret) of matches at a word of the text, or around it but
        not before `tried`."""
        if not self.reach:
            match = self.pattern.match(text, start, end + MAX_CHARS)
            found = (match,) if match is not None else ()
        else:
            near = max(start - _BEFORE, tried)
            found = self.pattern.finditer(text, near, end + self.reach)
        for match in found:
            group = next((i for i, g in enumerate(match.groups(), 1) if g is not None), 0)
            yield *match.span(group), self.check(match[group][:_ENOUGH])


def _any(_: str) -> bool:
    return True


def _varied(text: str) -> bool:
    """True unless the text is a place holder of one letter, or of words."""
    has_digit = any(map(str.isdigit, text))
    return has_digit and len(set(text)) >= 8 and not (is_place_holder(text[:16]) or is_wordy(text))


def _no_example(text: str) -> bool:
    return not text.endswith(("EXAMPLE", "EXAMPLEKEY"))


def _url_password(text: str) -> bool:
    return is_password(text) or is_random(text, 12)


def _is_mixed(text: str) -> bool:
    """True for letters that are no words: behind a user's name in an address they need no digit."""
    return len(text) >= 10 and 3 * n_changes(text) >= len(text) and not is_place_holder(text)


def _has_password(address: str) -> bool:
    """True if an address has a password. address: the user's name and password, and the text behind
    them; a password may hold the sign at which it ends."""
    authority = re.split("[/?#]", address, maxsplit=1)[0]
    user, has_two, password = authority.rpartition("@")[0].partition(":")
    if has_two and (_url_password(password) or _is_mixed(password)):
        return True
    return is_random(user or password, 20)


# Prefixes that say by themselves whose token it is, with the fewest characters behind them.
_PREFIXED = {
    "github-token": (r"gh[pousr]_", 20),
    "github-fine-grained-token": (r"github_pat_", 30),
    "gitlab-token": (r"gl(?:pat|dt|rt|ptt|soat|ft|imt|cbt|agent|ffct|oas)-", 20),
    "google-oauth": (r"ya29\.", 30),
    "google-client-secret": (r"GOCSPX-", 24),
    "stripe-webhook": (r"whsec_", 24),
    "stripe-key": (r"[sr]k_(?:live|test|prod)_", 16),
    "anthropic-key": (r"sk-ant-", 20),
    "openai-key": (r"sk-(?:proj|svcacct|admin|or-v1)-", 20),
    "xai-key": (r"xai-", 40),
    "nvidia-key": (r"nvapi-", 40),
    "together-key": (r"tgp_v1_", 30),
    "sonar-token": (r"sq[apu]_", 36),
    "google-refresh-token": (r"1//0", 40),
    "braintree-token": (r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$", 30),
    "groq-key": (r"gsk_", 30),
    "replicate-token": (r"r8_", 30),
    "hugging-face-token": (r"(?:hf|api_org)_", 30),
    "npm-token": (r"npm_", 30),
    "docker-token": (r"dckr_(?:pat|oat)_", 20),
    "doppler-token": (r"dp\.(?:pt|st|ct|sa|scim|audit)\.", 30),
    "digitalocean-token": (r"do[opr]_v1_", 40),
    "shopify-token": (r"shp(?:at|ca|pa|ss|ua)_", 24),
    "square-secret": (r"sq0(?:csp|atp|idp)-", 20),
    "databricks-token": (r"dapi", 30),
    "vault-token": (r"hv[sbr]\.", 24),
    "linear-key": (r"lin_(?:api|oauth)_", 30),
    "rubygems-key": (r"rubygems_", 32),
    "newrelic-key": (r"NR(?:AK|II|JS|BR|RA)-", 19),
    "heroku-key": (r"HRKU-", 30),
    "atlassian-token": (r"AT(?:ATT|CTT|BB)[0-9A-Za-z]{0,3}", 28),
    "grafana-token": (r"gl(?:sa|c)_", 30),
    "sentry-token": (r"sntry[su]_", 40),
    "artifactory-key": (r"AKCp", 60),
    "facebook-token": (r"EAA[A-Za-z]", 60),
    "figma-token": (r"figd_", 30),
    "postman-key": (r"PMAK-", 40),
    "planetscale-token": (r"pscale_(?:tkn|pw|oauth)_", 30),
    "supabase-key": (r"sb(?:p|_secret)_", 20),
    "tailscale-key": (r"tskey-(?:auth|api|client|webhook|scim)-", 20),
    "notion-secret": (r"(?:secret_|ntn_)", 40),
    "cloudflare-key": (r"v1\.0-[0-9a-f]{24}-", 100),
    "pulumi-token": (r"pul-", 40),
    "mapbox-token": (r"sk\.eyJ", 40),
    "dropbox-token": (r"sl\.(?:u\.)?", 100),
    "langchain-key": (r"ls(?:v2)?_(?:pt|sk)_", 30),
    "pinecone-key": (r"pcsk_", 40),
    "perplexity-key": (r"pplx-", 40),
    "posthog-key": (r"ph[xs]_", 40),
    "sendinblue-key": (r"xkeysib-", 60),
    "onepassword-token": (r"ops_eyJ", 60),
    "buildkite-token": (r"bkua_", 38),
    "circleci-token": (r"CCIPAT_", 30),
    "contentful-token": (r"CFPAT-", 40),
    "duffel-token": (r"duffel_(?:test|live)_", 40),
    "easypost-key": (r"EZ[AT]K", 50),
    "netlify-token": (r"nfp_", 36),
    "render-key": (r"rnd_", 28),
    "vercel-token": (r"vc[kpiarl]_", 24),
    "age-key": (r"AGE-SECRET-KEY-1", 50),
    "azure-devops": (r"AZDO", 70),
    "slack-token": (r"xox[a-z](?:\.xox[a-z])?-", 20),
    "slack-app-token": (r"xapp-", 30),
}
PREFIXES = (
    *(prefix for prefix, _ in _PREFIXED.values()),
    *("A(?:KIA|SIA|BIA|CCA)", "AIza", "sk-", r"SG\.", "pypi-", "eyJ", "(?:AC|SK)[0-9a-f]{2}"),
    *(r"fm[12][ar]?_", r"key-[0-9a-f]", r"\d{8,10}:AA", r"hooks\.slack\.com/services/"),
)
"""Expressions for the beginnings of tokens that say by themselves whose they are."""
# Words in small letters that find the above; of most it is the prefix itself.
_WORDS = {
    "github-token": ("ghp_", "gho_", "ghs_", "ghu_", "ghr_"),
    "gitlab-token": (
        *("glpat-", "gldt-", "glrt-", "glptt-", "glsoat-", "glft-", "glimt-", "glcbt-"),
        *("glagent-", "glffct-", "gloas-"),
    ),
    "stripe-key": tuple(f"{a}k_{b}_" for a in "sr" for b in ("live", "test", "prod")),
    "openai-key": ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-or-v1-"),
    "hugging-face-token": ("hf_", "api_org_"),
    "docker-token": ("dckr_",),
    "doppler-token": ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
    "digitalocean-token": ("doo_v1_", "dop_v1_", "dor_v1_"),
    "shopify-token": ("shpat_", "shpca_", "shppa_", "shpss_", "shpua_"),
    "sonar-token": ("sqa_", "sqp_", "squ_"),
    "braintree-token": ("access_token$",),
    "square-secret": ("sq0csp-", "sq0atp-", "sq0idp-"),
    "vault-token": ("hvs.", "hvb.", "hvr."),
    "linear-key": ("lin_api_", "lin_oauth_"),
    "newrelic-key": ("nrak-", "nrii-", "nrjs-", "nrbr-", "nrra-"),
    "atlassian-token": ("atatt", "atctt", "atbb"),
    "grafana-token": ("glsa_", "glc_"),
    "sentry-token": ("sntrys_", "sntryu_"),
    "facebook-token": ("eaa",),
    "planetscale-token": ("pscale_",),
    "supabase-key": ("sbp_", "sb_secret_"),
    "tailscale-key": ("tskey-",),
    "notion-secret": ("secret_", "ntn_"),
    "cloudflare-key": ("v1.0-",),
    "dropbox-token": ("sl.u.", "sl.b"),
    "langchain-key": ("lsv2_", "ls__"),
    "posthog-key": ("phx_", "phs_"),
    "duffel-token": ("duffel_",),
    "easypost-key": ("ezak", "eztk"),
    "vercel-token": tuple(f"vc{c}_" for c in "kpiarl"),
    "slack-token": ("xox",),
}
# Words behind which, as tokens of this kind are nothing else, whatever follows in the line is one:
# a token that is put together of two texts, or that stands before its prefix.
_MARKS = ("ghp_", "gho_", "ghs_", "ghp%5f", "github_pat_", "glpat-", "xoxb-", "xoxp-", "sk_live_")


def _bare(prefix: str) -> str:
    return re.sub(r"\\(.)", r"\1", prefix).lower()


def _prefixed() -> Iterator[SecretForm]:
    for name, (prefix, n) in _PREFIXED.items():
        words = _WORDS.get(name) or (_bare(prefix),)
        is_plain = name in ("github-token", "github-fine-grained-token", "google-client-secret")
        edge = "" if name.startswith("github") else r"(?<!\w)"
        pattern = re.compile(rf"{edge}({prefix}{_TOKEN}{{{n},}}(?:[.:=+/~%]+{_TOKEN}+)*)", re.ASCII)
        yield SecretForm(name, words, pattern, _any if is_plain else _varied)


def _form(
    name: str,
    words: str,
    expression: str,
    check: Callable[[str], bool] = _varied,
    flags: int = 0,
    reach: int = 0,
) -> SecretForm:
    pattern = re.compile(expression, re.ASCII | flags)
    return SecretForm(name, tuple(words.split(" ")), pattern, check, reach)


_HEX_40 = re.compile(r"[0-9a-fA-F]{40}")
_EDGE = r"(?<![0-9A-Za-z_+/-])"
_OURS = (
    _form(
        "aws-key-id",
        "akia asia abia acca",
        rf"{_EDGE}A(?:KIA|SIA|BIA|CCA)[0-9A-Z]{{16}}\b",
        _no_example,
    ),
    _form(
        "aws-secret-key",
        "secret_access_key",
        r"secret_access_key\W{1,5}([0-9A-Za-z/+]{40})\b",
        _no_example,
        re.IGNORECASE,
    ),
    _form("google-api-key", "aiza", r"AIza[\w-]{35}"),
    _form("google-client", "gocspx-", r"GOCSPX-[\w-]{28}", _any),
    _form("hugging-face", "hf_", r"\bhf_[A-Za-z]{34}\b", _any),
    _form("stripe", "sk_live_ rk_live_", r"\b[sr]k_live_[0-9A-Za-z]{20,}", _any),
    _form("age", "age-secret-key-", r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}", _any),
    _form("npm", "npm_", r"\bnpm_[0-9A-Za-z]{36}\b", _any),
    _form("gitlab", "glpat-", r"\bglpat-[0-9A-Za-z_-]{20}", _any),
    _form("slack", "xox", r"\bxox[abprs]-[0-9A-Za-z-]{20,}", _any),
    _form("api-key", "sk-", r"(?<![0-9A-Za-z_-])sk-[0-9A-Za-z_-]{32,}", is_random),
    _form("flyio-token", "fm1_ fm2_ fm1a_ fm1r_", r"fm[12][ar]?_[\w+/=,-]{40,}"),
    _form("sendgrid", "sg.", r"\bSG\.[\w-]{16,}\.[\w-]{30,}", _any),
    _form("slack-webhook", "hooks.slack", r"hooks\.slack\.com/services/(T\w+/B\w+/\w{20,})", _any),
    _form(
        "discord-webhook",
        "/webhooks/",
        r"discord(?:app)?\.com/api/webhooks/(\d{16,}/[\w-]{40,})",
        reach=_NEAR,
    ),
    _form("telegram-bot", ":aa", r"(?<![0-9A-Za-z])\d{8,10}:AA[\w-]{32,}", reach=_NEAR),
    _form("mailgun", "key-", r"(?<![0-9A-Za-z-])key-[0-9a-f]{32}(?![0-9A-Za-z])"),
    _form(
        "mailchimp", "-us", r"(?<![0-9A-Za-z])[0-9a-f]{32}-us\d{1,2}(?![0-9A-Za-z])", reach=_NEAR
    ),
    _form("azure-client-secret", "q~", r"(?<![\w.~-])[\w.~-]{3}\dQ~[\w.~-]{30,}", reach=_NEAR),
    _form(
        "azure-storage-key", "accountkey= accesskey=", rf"A\w+Key=({_BASE64}{{40,}}={{0,2}})", _any
    ),
    _form("azure-signature", "sig=", r"(?<=[?&'\"\s])sig=([\w%+/-]{40,}(?:%3[Dd]|=)?)", is_random),
    _form(
        "twilio",
        " ".join(f"{kind}{a}{b}" for kind in ("ac", "sk") for a in _HEX for b in _HEX),
        r"(?<![0-9A-Za-z])(?:AC|SK)[0-9a-f]{32}(?![0-9A-Za-z])",
    ),
    _form("pypi-token", "pypi-", r"pypi-AgE[\w-]{50,}"),
    # Signed ones have three parts, encrypted ones five.
    _form(
        "json-web-token",
        "eyj",
        r"\beyJ[\w-]{8,}(?:\.ey[\w-]{8,}(?:\.[\w-]*)?|(?:\.[\w-]{0,1000}){4})",
    ),
    _form(
        "authorization",
        "bearer basic",
        r"\b(?:bearer|basic)[ \t]+['\"]?([\w+/~.-]{16,}={0,2})",
        is_random,
        re.IGNORECASE,
    ),
    # With what stands behind: where a password leads to is part of the secret.
    _form(
        "password-in-address",
        "://",
        r"://((?:[^\s/:@'\"<>{}$%|()\\,]{0,80}:[^\s/@'\"<>{}$|()\\,:;]{0,200}"
        r"|[^\s/:@'\"<>{}$%|()\\,]{20,200})@[^\s'\"<>`\\]*)",
        _has_password,
    ),
    _form(
        "json-web-key",
        "\"kty\" 'kty' kty:",
        r"\b(?:d|p|q|dp|dq|qi|k)[\"']?\s*:\s*[\"']([\w-]{20,})",
        is_random,
        reach=1500,
    ),
    _form(
        "curl-user",
        "curl",
        r"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?['\"]?[^\s:'\"$]{1,80}:([^\s'\"$]{6,120})",
        _url_password,
    ),
    _form(
        "password-of-command",
        "sshpass mysql htpasswd",
        r"\b(?:sshpass[ \t]+-p[ \t]*|mysql\w*\b[^\n|;]{0,200}?[ \t]-p"
        r"|htpasswd[ \t]+-\w*b\w*[ \t]+\S+[ \t]+\S+[ \t]+)['\"]?([^\s'\"$]{6,120})",
        is_password,
    ),
    _form(
        "password-of-sql",
        "identified",
        r"\bidentified[ \t]+(?:with[ \t]+\S+[ \t]+)?by[ \t]+['\"]([^'\"\n]{6,120})",
        is_password,
        re.IGNORECASE,
    ),
    _form(
        "secure-string",
        "convertto-securestring",
        r"ConvertTo-SecureString[ \t]+(?:-String[ \t]+)?['\"]([^'\"\n]{6,200})",
        is_password,
        re.IGNORECASE,
    ),
    _form(
        "key-in-xml",
        "<rsakeyvalue",
        r"<(?:D|P|Q|DP|DQ|InverseQ)>\s*([A-Za-z0-9+/=\s]{20,}?)\s*(?:</|\Z)",
        _any,
        reach=MAX_CHARS,
    ),
    _form("firebase-server-key", ":apa91b", r"(?<![\w-])[\w-]{7,20}:APA91b[\w-]{60,}", reach=_NEAR),
    *(
        SecretForm(
            "aws-secret-beside-its-id",
            (mark,),
            re.compile(rf"(?<![\w/+-])({_BASE64}{{40}})(?![\w/+=-])", re.ASCII),
            lambda text: is_random(text, 40) and not _HEX_40.fullmatch(text),
            _NEAR,
        )
        for mark in ("akia", "asia")
    ),
    *(
        SecretForm(
            "token-in-parts",
            (mark,),
            re.compile(r"(?<![\w/+-])([0-9A-Za-z]{20,})(?![\w/+-])", re.ASCII),
            lambda text: is_random(text, 20),
            _NEAR,
        )
        for mark in _MARKS
    ),
)

FORMS: tuple[SecretForm, ...] = (*_prefixed(), *_OURS)
