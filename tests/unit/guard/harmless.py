"""The labeled set, its good half: messages that only look as if they had a secret."""

from __future__ import annotations

import random

from tests.unit.guard.made_up import drawn, fill

SEED = 20_240_118

_LOOKALIKES = (
    "commit {hex:40}\nAuthor: Alice <alice@example.org>",
    "fixed in {hex:7}, see {hex:40} for the follow-up",
    "md5 {hex:32}  backup.tar.gz",
    "sha256:{hex:64} is the digest of the image",
    "{hex:128}  release.iso",
    "request id {uuid} timed out",
    "trace_id={hex:32} span_id={hex:16}",
    "The task-{hex:32} finished; job {uuid} is next.",
    "data:image/png;base64,iVBORw0KGgo{base64:400}",
    "<img src='data:image/jpeg;base64,/9j/4AAQ{base64:600}='>",
    '    "integrity": "sha512-{base64:86}==",',
    "requests==2.32.3 --hash=sha256:{hex:64}",
    'checksum = "{hex:64}"',
    "golang.org/x/text v0.14.0 h1:{base64:43}=",
    "resolved https://registry.example.org/left-pad/-/left-pad-1.3.0.tgz#{hex:40}",
    "ISBN 978-0-{digits:3}-{digits:5}-2 is on my reading list",
    "call me at +49 30 {digits:4} {digits:4} after six",
    "my number is (555) 01{digits:1}-{digits:4}",
    "order number {digits:10} has shipped",
    "order #1{digits:2}-{digits:7}-{digits:7} arrives on Monday",
    "tracking 1Z{upper:16} is out for delivery",
    "tracking number 94{digits:20}",
    "invoice INV-2024-{digits:6} over 1,299.00 EUR",
    "the event happened at 17{digits:11} ms since the epoch",
    "tweet 1{digits:18} is gone",
    "pi is 3.14159265358979{digits:6}",
    "lat 52.{digits:14}, lon 13.{digits:14}",
    "version 2.{digits:1}.{digits:2}+build.{hex:8}",
    "https://www.youtube.com/watch?v={word:11}",
    "https://docs.example.org/document/d/1{word:43}/edit",
    "https://example.org/avatar/{hex:32}?s=200",
    "s3://bucket-{digits:4}/exports/{uuid}.parquet",
    "arn:aws:iam::{digits:12}:role/deploy",
    "ssh-rsa AAAAB3NzaC1yc2E{base64:300} alice@laptop",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{base64:43} alice@laptop",
    "SHA256:{base64:43} is the fingerprint of the host",
    "-----BEGIN CERTIFICATE-----\n{base64:64}\n{base64:64}\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n{base64:64}\n{base64:64}\n-----END PUBLIC KEY-----",
    "the publishable one is pk_live_{alnum:24}",
    "cache-key: linux-pip-{hex:64}",
    'etag: W/"{hex:32}"',
    "MAC 00:1b:{hex:2}:{hex:2}:{hex:2}:{hex:2}",
    "fe80::{hex:4}:{hex:4}:{hex:4}:{hex:4}",
    "wallet 0x{hex:40} got 0.2 ETH",
    "color: #{hex:6}; background: #{hex:6};",
    "The serial number on the back is {upper:12}.",
    "license plate B-{upper:2} {digits:4}",
    "booking code {upper:6}, seat 14C",
    "IMEI 35{digits:13}",
    "flight LH{digits:3} on {digits:2}.05., gate A{digits:2}",
    "id: {base58:22}",
    "next_cursor={base64:20}",
    "ticket ABC-{digits:5} blocks DEF-{digits:5}",
    "\\x{hex:2}\\x{hex:2}\\x{hex:2}\\x{hex:2}",
    "DOI 10.{digits:4}/s{digits:5}-024-{digits:5}-x",
    "uploads/{digits:4}/{hex:2}/{hex:62}.webp",
)
_ABOUT = (
    "I forgot my password again.",
    "The password policy is strict: 12 characters, one symbol.",
    "Your password must be at least 8 characters and contain 1 digit.",
    "The password is required.",
    "the password is case-sensitive and expires in 90days",
    "My password is too long for that form.",
    "Is the password the same as last year?",
    "password is stored as SHA256 with a salt",
    "She keeps her passwords in a notebook from 1998.",
    "We rotate the API key every 30 days.",
    "The api key is missing from the request.",
    "api_key = os.environ['WEATHER_API_KEY']",
    "token = request.headers.get('Authorization')",
    "Authorization: Bearer <token>",
    "Authorization: Bearer ${ACCESS_TOKEN}",
    "def login(user: str, password: str) -> Session:",
    "password = getpass.getpass('Password: ')",
    "password=password, username=username",
    "if password == confirm_password: save()",
    "const password = req.body.password;",
    "input type='password' name='user_password1'",
    '"password": "must have at least 8 characters"',
    "password: ********",
    "password: <your password here>",
    "Set DB_PASSWORD=changeme before the first start.",
    "POSTGRES_PASSWORD=${POSTGRES_PASSWORD}",
    "postgres://user:password@localhost:5432/db",
    "redis://:${REDIS_PASSWORD}@cache:6379/0",
    "A GitHub token starts with ghp_ and an OpenAI key with sk-.",
    "It looks like sk-ant-api03-... and is about a hundred characters long.",
    "AKIAXXXXXXXXXXXXXXXX is what an access key looks like.",
    "export OPENAI_API_KEY=sk-your-key-here",
    "GITHUB_TOKEN=ghp_xxxxxxxxxxxx",
    "The token limit is 128000 and the budget 4096.",
    "max_tokens: 4096, tokens_used=1532",
    "The secret is to let the dough rest overnight.",
    "The secret of a good risotto is patience.",
    "The key is under the mat; the spare key is with Bob.",
    "The key takeaway: ship smaller changes.",
    "primary key (id), foreign key (user_id) references users",
    "keyboard_shortcuts = {'save': 'ctrl+s'}",
    "Mein Passwort habe ich schon wieder vergessen.",
    "Das Passwort ist zu kurz.",
    "Das Passwort muss mindestens 12 Zeichen haben.",
    "J'ai encore oublié mon mot de passe.",
    "Le mot de passe est obligatoire.",
    "He olvidado mi contraseña otra vez.",
    "La contraseña es obligatoria.",
    "La clave es practicar todos los días.",
    "A senha é obrigatória.",
    "我又忘记密码了。",
    "密码必须至少8个字符。",
    "密码是必填项",
    "パスワードを忘れました。",
    "Я снова забыл пароль.",
    "The passphrase is the one from the book.",
    "He changed the password on Windows11 and on his phone.",
    "pass the salt: it needs 2 spoons",
    "All tests pass: 212 of 212.",
    "Connect pin 13 to ground and pin 5 to 3.3V.",
    "My PIN pad is broken.",
    "The bearer of this letter is my cousin.",
    "A JWT has three parts, header.payload.signature, in base64url.",
    "Use -----BEGIN {-}PRIVATE KEY----- as the first line.",
    "The credentials are in the vault, ask Carol.",
    "PWD=/home/alice/projects/site2024",
    "The seed phrase is twelve words long; write it down and keep it in a safe place at home.",
    "Recovery is slow: three weeks, then light running, then swimming and cycling as before.",
    "curl -u alice https://example.org/",
    "docker run -u 1000:1000 -p 8080:80 app",
    "mkdir -p build/output2024 && cd build",
    "ssh -p 2222 deploy@203.0.113.7",
    "https://example.org:8443/path?x=1#top",
    "mailto:alice@example.org?subject=Hello",
    "My favorite number is 42 and my shoe size is 43.",
)
_WHO = ("Alice", "my sister", "the new colleague", "Dr. Okafor", "our neighbor", "the landlord")
_WHAT = (
    "moved to Lyon in May 2023",
    "likes green tea at 8:30",
    "is allergic to peanuts",
    "asked for the Q3 report by Friday",
    "runs 5 km every Tuesday",
    "prefers short answers in English",
    "lives on the 4th floor, apartment 12B",
    "paid 1,250.00 EUR on 2024-03-01",
    "works on the K8s migration",
    "is reading 1984 for the 2nd time",
)
_CODE = (
    "for i in range({n}):\n    total += values[i] * 0x{hex:4}",
    "SELECT id, email FROM users WHERE id = {n} LIMIT 50;",
    "const id_{n} = items.map((x) => x.id).filter(Boolean);",
    "assert digest == '{hex:64}'",
    "return f'{self.base_url}/v{n}/items?page={page}'",
    ".card-{n} { margin: 0 auto; color: #{hex:6}; }",
    "import numpy as np\nx = np.linspace(0, {n}, 1000)",
    "git cherry-pick {hex:12} && git push origin feature/{n}-login",
    "pip install 'torch=={n}.4.0' --no-deps",
    "ERROR 2024-05-01T10:{n}:00Z worker-{hex:5} failed with code 0x{hex:8}",
)


def harmless() -> list[str]:
    """Messages without a secret, most of them with something that looks like one."""
    chance = random.Random(SEED)
    alike = [fill(text, chance)[0] for text in _LOOKALIKES for _ in range(12)]
    about = [fill(text, chance)[0] for text in _ABOUT]
    about += [f"{text} {_said(chance)}" for text in about for _ in range(2)]
    prose = [f"{who} {what}." for who in _WHO for what in _WHAT]
    code = [
        fill(text.replace("{n}", str(chance.randrange(10, 60))), chance)[0]
        for text in _CODE
        for _ in range(10)
    ]
    numbers = [
        f"reference {drawn('digits', size, chance)}" for size in range(6, 26) for _ in range(4)
    ]
    return alike + about + prose + code + numbers


def _said(chance: random.Random) -> str:
    return f"Also, {chance.choice(_WHO)} {chance.choice(_WHAT)}."
