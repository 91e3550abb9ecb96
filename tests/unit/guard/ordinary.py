"""Messages without a secret that are full of what could hide one: escapes, colors, wraps, hashes.

Everything is filled from one seed; no text is a copy of anybody's.
"""

# ruff: noqa: E501, RUF001 - lines as tools print them, punctuation of other scripts is meant.

from __future__ import annotations

import json
import random

from tests.unit.guard.made_up import fill
from tests.unit.guard.outputs import PLACES

SEED = 20_260_502
EACH = 24

_TEXTS = (
    # git and diffs
    "commit {hex:40} (HEAD -> main)\nAuthor: {user} <{user}@example.org>\nDate:   {time}\n\n    Fix login",
    "\x1b[33m{hex:7}\x1b[m\x1b[33m (\x1b[m\x1b[1;36mHEAD\x1b[m\x1b[33m)\x1b[m rotate tokens weekly",
    "diff --git a/{svc}.py b/{svc}.py\nindex {hex:7}..{hex:7} 100644\n@@ -1 +1 @@\n-token = None\n+token = load()",
    "{hex:40} refs/heads/main\n{hex:40} refs/tags/v1.{digits:2}.0\n{hex:40} HEAD",
    "{hex:64}  {svc}.tar.gz\n{hex:64}  {svc}.whl\n{hex:32}  notes.txt",
    # logs and JSON
    '{"ts":"{time}","level":"info","msg":"done\\nnext","trace":"{hex:32}","id":"{uuid}"}',
    '{"url":"https://{host}/a%20b?page=2&q=caf%C3%A9","ua":"Mozilla/5.0 (X11; Linux)","ms":{digits:3}}',
    '{"log":"\\u001b[32mINFO\\u001b[39m listening on :8080\\n","stream":"stdout","time":"{time}"}',
    "{time} INFO [{svc}] request_id={uuid} status=200 bytes={digits:5} took=12ms",
    "\x1b[90m{time}\x1b[0m \x1b[32mINF\x1b[0m token bucket refilled \x1b[36mtokens=\x1b[0m4096",
    '{"password":{"type":"string","minLength":12},"token":{"$ref":"#/definitions/Token"}}',
    '{"error":"invalid_token","error_description":"The access token expired at {time}"}',
    '< www-authenticate: Bearer realm="{host}", error="invalid_token"\n< x-request-id: {uuid}',
    '> GET /v1/keys?page=2 HTTP/2\n> accept: */*\n< etag: W/"{hex:32}"\n< cf-ray: {hex:16}-FRA',
    # settings without secrets
    "DB_HOST={host}\nDB_PASSWORD=${DB_PASSWORD}\nTOKEN_FILE=/run/secrets/token\nPORT={digits:4}",
    "env:\n- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: {svc}\n      key: password",
    "<password>${env.DB_PASSWORD}</password>\n<username>{user}</username>\n<port>{digits:4}</port>",
    'password = var.db_password\nsecret_arn = "arn:aws:secretsmanager:eu-north-1:{digits:12}:secret:{svc}"',
    "Server={host};Database={svc};Integrated Security=true;Encrypt=true;Timeout=30",
    "resources:\n  limits: {cpu: 500m, memory: 512Mi}\n  image: {svc}@sha256:{hex:64}",
    "[tool.ruff]\nline-length = 100\nselect = ['E', 'F']\n\n[project]\nversion = '1.{digits:2}.0'",
    "CREATE TABLE users (id uuid PRIMARY KEY, password varchar(255) NOT NULL, token text);",
    "ALTER ROLE {user} PASSWORD NULL;\nSELECT id FROM tokens WHERE key = $1 AND secret = $2;",
    # code
    "def login(user: str, password: str) -> Token:\n    token = issue(user, password)\n    return token",
    "const token = req.headers['x-api-key'] ?? process.env.API_KEY;\nif (!token) throw new Error('401');",
    'password := os.Getenv("DB_PASSWORD")\nif password == "" {\n\tlog.Fatal("no password")\n}',
    'let secret = std::env::var("SECRET_KEY").expect("SECRET_KEY is not set");',
    "$password = $_POST['password'] ?? '';\n$hash = password_hash($password, PASSWORD_DEFAULT);",
    'String token = jwt.sign(claims, keyPair.getPrivate());\nassertEquals(3, token.split("\\\\.").length);',
    're.compile(r"\\b[0-9a-f]{{40}}\\b")  # \\n is a line, \\t a tab, %20 a space',
    'printf("%s\\t%d\\n", name, count);\nprintf("\\x1b[31m%s\\x1b[0m\\n", text);',
    "fields = ('username', 'email', 'password1', 'password2')\nlabels = {'token': _('Token')}",
    "parser.add_argument('--password', help='the password, or - to read it from a terminal')",
    "#define KEY_{digits:2} 0x{hex:8}\nstatic const uint32_t keys[] = {0x{hex:8}, 0x{hex:8}};",
    "import {svcname} from '@acme/{svcname}';\nexport const apiKeyHeader = 'X-Api-Key';",
    # binary things as text
    "![chart](data:image/png;base64,iVBORw0KGgo{base64:76}\n{base64:76}\n{base64:40}=)",
    "-----BEGIN CERTIFICATE-----\n{base64:64}\n{base64:64}\n{base64:40}==\n-----END CERTIFICATE-----",
    "00000000: {hex:4} {hex:4} {hex:4} {hex:4}  ..ELF...\n00000010: {hex:4} {hex:4} {hex:4} {hex:4}  ........",
    "  adding: {svc}.png (deflated {digits:2}%)\n  adding: icon.svg (stored 0%)",
    "id,amount,when\n{digits:8},{digits:3}.50,2026-05-01\n{digits:8},{digits:3}.00,2026-05-02",
    "{digits:6}\n{digits:7}\n{digits:6}\n{digits:7}\n{digits:6}",
    "{uuid}\n{uuid}\n{uuid}",
    "IPv6 2001:db8:{hex:4}:{hex:4}::{hex:4}, MAC {hex:2}:{hex:2}:{hex:2}:{hex:2}:{hex:2}:{hex:2}",
    # prose in several languages
    "I forgot my password again, so I asked {user} to reset it. The token limit is {digits:4} now.",
    "Bitte denk daran, das Passwort für das WLAN zu ändern. Termin: {digits:2}.05., Raum A{digits:2}.",
    "J'ai changé le mot de passe hier ; la clé est sous le paillasson, boîte {digits:3}.",
    "La contraseña caduca cada {digits:2} días. La clave está en practicar.",
    "我的朋友住在里昂，电话尾号：{digits:4}。密码我忘了！",
    "パスワードは来週変更します。会議は{digits:2}時、Ａ棟３階です。",
    "Пароль истекает через {digits:2} дней, поменяй его.",
    "비밀번호는 {digits:2}일마다 바꾸세요. 회의실은 {digits:3}호입니다.",
    "| name | type | note |\n|---|---|---|\n| password | string | required |\n| token | string | optional |",
    "1. Open the settings.\n2. Choose *Keys*.\n3. Press **New token** and copy it to `TOKEN`.",
    "The paper (arXiv:2{digits:3}.{digits:5}) reports R@10 of 0.{digits:3} on 12 sets; see Table 3.",
    "Flight LH{digits:4} leaves at 10:45, seat 14C, booking {upper:6}; ISBN 978-3-16-{digits:6}-0.",
    "PASS tests/{svc}.test.js (5.{digits:2} s)\nTests: {digits:2} passed, {digits:2} total\nsecret scanning: no leaks",
    "npm warn deprecated rimraf@3.0.2\nadded {digits:3} packages, and audited {digits:3} packages in 9s",
    "warning: token `;` expected\n --> src/main.rs:{digits:2}:5\n  |\n{digits:2} |     let key = map.key()\n  |",
    "bearer of good news: the Bearer scheme is described in RFC 6750, see section 2.1 of it",
)


def ordinary() -> list[str]:
    """Each text several times, and each once more as a string of JSON."""
    chance = random.Random(SEED)
    made = []
    for template in _TEXTS:
        for _ in range(EACH):
            text = template.replace("{svcname}", chance.choice(("charts", "router", "forms")))
            for name, values in PLACES.items():
                text = text.replace(f"{{{name}}}", chance.choice(values))
            made.append(fill(text, chance)[0])
    return made + [json.dumps(text) for text in made[::2]]
