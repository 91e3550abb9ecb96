"""The labeled set, its bad half: messages with a secret in them.

The secrets are made from what vendors publish about their formats, not from the rules, and stand in
sentences, settings and code as people paste them. Everything comes from one seed.
"""

# ruff: noqa: RUF001 - punctuation of other scripts is meant.

from __future__ import annotations

import random
from dataclasses import dataclass

from tests.unit.guard.made_up import fill

SEED = 20_240_117
PER_VENDOR = 10
PER_SHAPE = 12


@dataclass(frozen=True, slots=True)
class Leak:
    """A message, and the secret in it that must not be left."""

    kind: str
    text: str
    secret: str


VENDORS: dict[str, tuple[str, ...]] = {
    # One token per line, as the vendor documents it; {…} is what chance fills in.
    "AWS access key": ("AKIA{base32:16}", "ASIA{base32:16}"),
    "Anthropic": ("sk-ant-api03-{word:86}-{word:6}AA", "sk-ant-oat01-{word:86}-{word:6}AA"),
    "OpenAI": (
        "sk-{alnum:20}T3{-}BlbkFJ{alnum:20}",
        "sk-proj-{word:58}T3{-}BlbkFJ{word:58}",
        "sk-svcacct-{word:58}T3{-}BlbkFJ{word:58}",
    ),
    "OpenRouter": ("sk-or-v1-{hex:64}",),
    "Groq": ("gsk_{alnum:52}",),
    "xAI": ("xai-{alnum:80}",),
    "Perplexity": ("pplx-{alnum:48}",),
    "Hugging Face": ("hf_{letters:34}",),
    "Replicate": ("r8_{alnum:37}",),
    "Google API": ("AIza{-}Sy{word:33}",),
    "Google OAuth": ("GOCSPX-{word:28}", "ya29.a0{word:200}"),
    "Azure storage": (
        "DefaultEndpointsProtocol=https;AccountName=shop;AccountKey={base64:86}==;"
        "EndpointSuffix=core.windows.net",
    ),
    "Azure application": ("{alnum:3}8Q~{word:34}", "{alnum:3}7Q~{alnum:31}"),
    "GitHub": ("ghp_{alnum:36}", "gho_{alnum:36}", "ghs_{alnum:36}", "ghu_{alnum:36}"),
    "GitHub fine-grained": ("github_pat_11{upper:20}_{alnum:59}",),
    "GitLab": ("glpat-{word:20}", "gldt-{word:20}", "glrt-{word:20}"),
    "Slack": (
        "xoxb-{digits:12}-{digits:12}-{alnum:24}",
        "xoxp-{digits:11}-{digits:11}-{digits:13}-{hex:32}",
        "xapp-1-A{upper:10}-{digits:13}-{hex:64}",
    ),
    "Slack webhook": ("https://hooks.slack.com/services/T{upper:8}/B{upper:10}/{alnum:24}",),
    "Stripe": ("sk_live_{alnum:24}", "rk_live_{alnum:99}", "sk_test_51{alnum:97}"),
    "Stripe webhook": ("whsec_{alnum:32}",),
    "npm": ("npm_{alnum:36}",),
    "PyPI": ("pypi-AgEIcHlwaS5vcmcC{word:160}",),
    "RubyGems": ("rubygems_{hex:48}",),
    "Docker Hub": ("dckr_pat_{word:27}",),
    "SendGrid": ("SG.{word:22}.{word:43}",),
    "Mailgun": ("key-{hex:32}", "{hex:32}-{hex:8}-{hex:8}"),
    "Mailchimp": ("{hex:32}-us21",),
    "Brevo": ("xkeysib-{hex:64}-{alnum:16}",),
    "Twilio": ("SK{hex:32}",),
    "Discord bot": ("MTE{alnum:23}.G{word:5}.{word:38}", "OD{alnum:22}.X{word:5}.{word:27}"),
    "Telegram bot": ("{digits:10}:AA{word:33}", "5{digits:9}:AA{word:33}"),
    "DigitalOcean": ("dop_v1_{hex:64}", "doo_v1_{hex:64}"),
    "Shopify": ("shpat_{hex:32}", "shpss_{hex:32}"),
    "Square": ("sq0atp-{word:22}", "sq0csp-{word:43}"),
    "Heroku": ("HRKU-AA{word:58}",),
    "Databricks": ("dapi{hex:32}",),
    "Linear": ("lin_api_{alnum:40}",),
    "Notion": ("ntn_{digits:11}{alnum:35}", "secret_{alnum:43}"),
    "Figma": ("figd_{word:40}",),
    "Atlassian": ("ATATT3xFfGF0{word:172}={upperhex:8}",),
    "Vault": ("hvs.CAES{word:91}",),
    "Terraform Cloud": ("{alnum:14}.atlasv1.{alnum:67}",),
    "Doppler": ("dp.pt.{alnum:43}",),
    "Grafana": ("glsa_{alnum:32}_{hex:8}",),
    "New Relic": ("NRAK-{upper:27}",),
    "Sentry": ("sntryu_{hex:64}",),
    "Airtable": ("pat{alnum:14}.{hex:64}",),
    "Postman": ("PMAK-{hex:24}-{hex:34}",),
    "Supabase": ("sbp_{hex:40}",),
    "age": ("AGE-SECRET-{-}KEY-1{bech32:58}",),
}
_CARRIERS = (
    "{}",
    "Here you go: {}",
    "Please remember that it is {} and never show it.",
    "export SERVICE_KEY={}",
    'config = {{"value": "{}", "retries": 3}}',
    "curl -H 'X-Key: {}' https://api.example.org/v1/items",
    "It broke after I pasted `{}` into the form.",
    "first line\n{}\nlast line",
    "(the old one was {})",
    "client = Client('{}')  # works on staging",
    "- value: {}\n- region: north",
    "我用的是 {} 这个",
)
_IN_CONTEXT: dict[str, tuple[str, ...]] = {
    # Vendors whose tokens have no shape of their own: only the words around them tell.
    "AWS secret key": (
        "AWS_SECRET_ACCESS_KEY={base64:40}",
        'aws_secret_access_key = "{base64:40}"',
        '"SecretAccessKey": "{base64:40}",',
        "my aws secret key is {base64:40} for the sandbox",
    ),
    "Heroku key by name": ("HEROKU_API_KEY={uuid}", "the heroku api token is {uuid}"),
    "Twilio token by name": ("TWILIO_AUTH_TOKEN={hex:32}", 'twilio auth_token: "{hex:32}"'),
    "Cloudflare token by name": ("CLOUDFLARE_API_TOKEN={word:40}", "cloudflare token: {alnum:40}"),
    "Datadog key by name": ("DD_API_KEY={hex:32}", "datadog_app_key = '{hex:40}'"),
}
SHAPES: dict[str, tuple[str, ...]] = {
    "private key": (
        "-----BEGIN {-}RSA PRIVATE KEY-----\n{base64:64}\n{base64:64}\n{base64:30}==\n"
        "-----END {-}RSA PRIVATE KEY-----",
        "-----BEGIN {-}EC PRIVATE KEY-----\n{base64:64}\n{base64:40}==\n"
        "-----END {-}EC PRIVATE KEY-----",
        "id_ed25519:\n-----BEGIN {-}OPENSSH PRIVATE KEY-----\n{base64:70}\n{base64:70}\n"
        "-----END {-}OPENSSH PRIVATE KEY-----\n",
        '"private_key": "-----BEGIN {-}PRIVATE KEY-----\\n{base64:64}\\n{base64:64}\\n'
        '-----END {-}PRIVATE KEY-----\\n"',
    ),
    "JSON web token": (
        "eyJ{alnum:33}.eyJ{alnum:110}.{word:43}",
        "jwt=eyJ{word:40}.eyJ{word:300}.{word:86}",
    ),
    "password in an address": (
        "postgresql://app:{alnum:16}@db.internal:5432/shop",
        "git clone https://deploy:{alnum:20}@git.example.org/team/app.git",
        "amqp://guest2:{alnum:8}@queue:5672/",
    ),
    "authorization header": (
        "Authorization: Bearer {word:48}",
        "-H 'Authorization: Basic {base64:28}=='",
    ),
    "payment card": (
        "my card is {cards:4:16}, expires 04/29",
        "{card:52:16}",
        "Amex {card:37:15} please",
        "pay with {cards:6011:16}",
    ),
    "IBAN": (
        "Überweise bitte auf {ibans:DE18}.",
        "IBAN: {iban:NLABNA10}",
        "my account is {ibans:GBNWBK14} at the bank",
        "{ibans:FR23}",
        "{iban:CH17}",
    ),
    "password in prose": (
        "My wifi password is {letters:5}{digits:3}, in case guests ask.",
        "the password for the old laptop is {alnum:10}",
        "remember my Netflix password: {alnum:9}!",
        "I set the password to {alnum:11} yesterday",
        "Passcode is {digits:6}",
    ),
    "password in another language": (
        "Mein Passwort ist {letters:6}{digits:2}!",
        "Das Kennwort lautet {alnum:10}",
        "Le mot de passe est {letters:5}{digits:4}",
        "mi contraseña es {letters:6}{digits:3}",
        "a senha é {letters:5}{digits:4}",
        "het wachtwoord is {letters:5}{digits:4}",
        "пароль: {letters:4}{digits:5}",
        "我的密码是{letters:3}{digits:6}",
        "パスワード：{alnum:12}",
    ),
    "password in settings": (
        "DB_PASSWORD={alnum:16}",
        'password = "{alnum:12}"',
        '{"user": "root", "password": "{alnum:14}"}',
        "spring.datasource.password={alnum:12}",
        "mysql -u root -p{alnum:12} shop",
    ),
    "key in settings": (
        "api_key={alnum:32}",
        'client_secret: "{word:40}"',
        "The API key for the weather service is {hex:32}.",
        "SECRET_KEY = '{alnum:50}'",
        "access_token={alnum:40}&expires=3600",
        "Mein API-Schlüssel ist {alnum:32}",
        "la clave de API es {alnum:32}",
        "API密钥：{alnum:32}",
    ),
    "recovery words": ("my seed phrase is {words:12}", "recovery phrase: {words:24}"),
}


def vendor_leaks() -> list[Leak]:
    """Tokens of vendors, as they get into messages."""
    chance, leaks = random.Random(SEED), []
    for kind, formats in VENDORS.items():
        for turn in range(PER_VENDOR):
            token, parts = fill(formats[turn % len(formats)], chance)
            carrier = _CARRIERS[(turn + len(kind)) % len(_CARRIERS)]
            leaks.append(Leak(kind, carrier.format(token), max(parts, key=len)))
    return leaks + _filled(_IN_CONTEXT, PER_VENDOR, chance)


def shaped_leaks() -> list[Leak]:
    """Secrets of no vendor: keys, passwords, cards and accounts."""
    return _filled(SHAPES, PER_SHAPE, random.Random(SEED + 1))


def _filled(templates: dict[str, tuple[str, ...]], each: int, chance: random.Random) -> list[Leak]:
    leaks = []
    for kind, texts in templates.items():
        for turn in range(each):
            text, parts = fill(texts[turn % len(texts)], chance)
            leaks.append(Leak(kind, text, max(parts, key=len)))
    return leaks
