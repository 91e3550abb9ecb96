"""What tools print: 115 outputs of our own making, each filled several times, with the secrets in them marked.

A slot `<<kind>>` is a secret, anything in braces is filled in at random and is none. `vendor` is a
token of any vendor, `pw` a password of letters and digits, `pw!` one with symbols too.
"""

# ruff: noqa: E501 - lines as tools print them.

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from tests.unit.guard.leaks import VENDORS
from tests.unit.guard.made_up import fill

SEED = 20_260_501
EACH = 3


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a tool, and the secrets that must not be left in it."""

    tool: str
    text: str
    secrets: tuple[str, ...]


_NEW_VENDORS = (
    *("llx-{alnum:48}", "tgp_v1_{word:43}", "vcp_{alnum:56}", "phs_{alnum:43}", "squ_{hex:40}"),
    *("PMAT-{upper:26}", "BBDC-{base64:44}", "ABSK{base64:128}=", "sbp_v0_{hex:40}"),
    *("sk-live-{alnum:32}", "csk-{lower32:48}", "napi_{lower32:64}", "re_{alnum:8}_{alnum:24}"),
)
PLACES = {
    "host": ("db-1.internal", "api.example.org", "10.0.12.7", "queue.example.net", "localhost"),
    "user": ("app", "deploy", "alice", "svc_backup", "root", "ci-runner"),
    "svc": ("billing", "gateway", "shop", "ingest", "worker", "auth-proxy"),
    "time": ("2026-05-01T10:22:31Z", "2026-03-17T04:05:06.123Z", "2026-11-30T23:59:01+01:00"),
}
OUTPUTS: dict[str, tuple[str, ...]] = {
    "grep": (
        "\x1b[35m\x1b[Ksrc/{svc}/settings.py\x1b[m\x1b[K\x1b[36m\x1b[K:\x1b[m\x1b[K14:"
        '\x1b[01;31m\x1b[KAPI_KEY\x1b[m\x1b[K = "<<vendor>>"',
        "config/{svc}.yml:7:  \x1b[01;31mpassword\x1b[0m: <<pw>>\nconfig/{svc}.yml:8:  port: 5432",
        "\x1b[0m\x1b[1m\x1b[35m./.env\x1b[0m\n\x1b[32m3\x1b[0m:TOKEN=\x1b[31m<<vendor>>\x1b[0m",
        "Binary file app.bin matches\nREADME.md:12:curl -H 'X-Api-Key: <<vendor>>' https://{host}/",
    ),
    "env": (
        "SHELL=/bin/bash\nPWD=/home/{user}/{svc}\nDB_HOST={host}\nDB_PASSWORD=<<pw!>>\nLANG=C.UTF-8\n"
        "AWS_ACCESS_KEY_ID=AKIA{base32:0}<<base32:16>>\nAWS_SECRET_ACCESS_KEY=<<base64:40>>\nSHLVL=1",
        'declare -x GITHUB_TOKEN="<<vendor>>"\ndeclare -x HOME="/root"\ndeclare -x SMTP_PASS="<<pw>>"',
        "HOSTNAME={svc}-{hex:9}-{lower32:5}\nREDIS_URL=redis://:<<pw>>@{host}:6379/0\nTERM=xterm",
        "export OPENAI_API_KEY=<<vendor>>\nexport MY_SERVICE_SECRET=<<alnum:40>>\nexport DEBUG=1",
    ),
    "docker": (
        '[\n  {\n    "Id": "{hex:64}",\n    "Config": {\n      "Env": [\n        "PATH=/usr/bin",\n'
        '        "POSTGRES_PASSWORD=<<pw>>",\n        "API_TOKEN=<<vendor>>"\n      ],\n'
        '      "Image": "sha256:{hex:64}"\n    }\n  }\n]',
        "services:\n  db:\n    image: postgres:16\n    environment:\n      - POSTGRES_PASSWORD=<<pw>>\n"
        "  web:\n    environment:\n      STRIPE_KEY: <<vendor>>\n    ports: ['8080:80']",
        '{\n  "auths": {\n    "registry.{host}": {\n      "auth": "<<base64:32>>"\n    }\n  }\n}',
        "Step 4/9 : ENV NPM_TOKEN=<<vendor>>\n ---> Running in {hex:12}\n ---> {hex:12}",
        "docker run -d --name {svc} -e MYSQL_ROOT_PASSWORD=<<pw>> -p 3306:3306 mysql:8",
        "> docker login -u {user} -p <<vendor>> registry.example.org\nLogin Succeeded",
    ),
    "curl": (
        "*   Trying 203.0.113.7:443...\n> GET /v1/items HTTP/2\n> Host: {host}\n> user-agent: curl/8.5\n"
        '> authorization: Bearer <<alnum:12>>\n>\n< HTTP/2 200\n< etag: W/"{hex:32}"',
        "> POST /login HTTP/1.1\n> Authorization: Basic <<base64:24>>==\n> Content-Length: 42\n\n"
        "< HTTP/1.1 302 Found\n< Set-Cookie: sessionid=<<alnum:32>>; HttpOnly; Path=/",
        '$ curl -sS -u {user}:<<pw>> https://{host}/api/v2/status\n{"ok": true}',
        "curl -X POST https://{host}/oauth/token -d 'grant_type=password&client_secret=<<alnum:40>>'",
        "$ curl 'https://{host}/export?access_token=<<alnum:40>>&format=csv'\nid,name",
        "< location: https://{host}/cb?code=1&id_token%3D<<vendor>>%26state%3Dok",
        "> X-Auth-Token: <<hex:32>>\n> Accept: */*\n< HTTP/1.1 401 Unauthorized",
        "> Cookie: lang=en; PHPSESSID=<<lower32:26>>; theme=dark",
    ),
    "JSON log": (
        '{"ts":"{time}","level":"error","msg":"login failed\\nAuthorization: Bearer <<alnum:24>>\\n",'
        '"trace":"{hex:32}"}',
        '{"time":"{time}","body":"{\\"user\\": \\"{user}\\", \\"password\\": \\"<<pw>>\\"}","status":200}',
        '{"severity":"INFO","message":"using key\\u003d<<vendor>>","pod":"{svc}-{hex:9}"}',
        '{"event":"request","url":"https://{host}/?api_key\\u003d<<alnum:32>>\\u0026page\\u003d2"}',
        '{"level":30,"time":1777630951,"headers":{"x-api-key":"<<alnum:32>>","host":"{host}"}}',
        '{"log":"\\u001b[33mWARN\\u001b[39m token \\u001b[31m<<vendor>>\\u001b[39m expires\\n","stream":"stderr"}',
        '{"message":"dsn: postgres://{user}:<<pw>>@{host}:5432/{svc}","logger":"db"}',
    ),
    "text log": (
        "{time} ERROR [{svc}] could not connect: mysql://{user}:<<pw>>@{host}/shop (timeout)",
        "May  1 10:22:31 {svc} sshd[2211]: debug: password=<<pw>> for {user} from 203.0.113.9",
        "\x1b[90m{time}\x1b[0m \x1b[32mDBG\x1b[0m refreshed \x1b[36mtoken=\x1b[0m<<vendor>>",
        "[{time}] GET /hook?token=<<alnum:32>> 200 12ms - Mozilla/5.0",
        "{time} DEBUG o.s.s.Filter - Header 'Authorization' = 'Bearer <<vendor>>'",
        "{time} worker-2 | connecting with Server={host};Database={svc};User Id={user};Password=<<letters:12>>;",
        'E0501 10:22:31.004 main.go:88] secret mismatch: got "<<alnum:32>>" api_secret="<<alnum:32>>"',
    ),
    "diff": (
        "diff --git a/.env b/.env\nindex {hex:7}..{hex:7} 100644\n--- a/.env\n+++ b/.env\n@@ -1,3 +1,3 @@\n"
        " DEBUG=1\n-DB_PASSWORD=<<pw>>\n+DB_PASSWORD=<<pw!>>\n API_URL=https://{host}",
        '@@ -8,2 +8,3 @@ def client():\n-    return Client()\n+    return Client("<<vendor>>")',
        "\x1b[31m-token: <<vendor>>\x1b[m\n\x1b[32m+\x1b[m\x1b[32mtoken: <<vendor>>\x1b[m",
        "commit {hex:40}\nAuthor: {user} <{user}@example.org>\n\n    add key\n\n+SECRET_KEY = '<<alnum:50>>'",
    ),
    "SQL": (
        "CREATE USER '{user}'@'%' IDENTIFIED BY '<<letters:12>>';\nGRANT SELECT ON {svc}.* TO '{user}'@'%';",
        "-- PostgreSQL database cluster dump\nCREATE ROLE {user};\n"
        "ALTER ROLE {user} WITH LOGIN PASSWORD '<<pw!>>';\nSET standard_conforming_strings = on;",
        "INSERT INTO settings (name, value) VALUES ('api_token', '<<vendor>>'), ('theme', 'dark');",
        "CREATE LOGIN {user} WITH PASSWORD = N'<<pw!>>', CHECK_POLICY = OFF;\nGO",
        "mysql> SET PASSWORD FOR '{user}'@'{host}' = PASSWORD('<<pw>>');\nQuery OK, 0 rows affected",
        "CREATE USER MAPPING FOR {user} SERVER far OPTIONS (user '{user}', password '<<pw>>');",
    ),
    "kubectl": (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {svc}\ndata:\n  password: <<alnum:16>>\n  user: YXBw",
        "    env:\n    - name: DB_PASSWORD\n      value: <<pw>>\n    - name: LOG_LEVEL\n      value: debug",
        "    Environment:\n      DB_HOST:      {host}\n      DB_PASSWORD:  <<pw>>\n      WORKERS:      4",
        "users:\n- name: admin\n  user:\n    token: <<vendor>>\n    client-key-data: LS0tLS1CRUdJTiBSU0Eg<<base64:200>>",
        "$ kubectl create secret generic {svc} --from-literal=api_key=<<alnum:32>>\nsecret/{svc} created",
    ),
    "terraform": (
        '  ~ resource "aws_db_instance" "{svc}" {\n      ~ password = "<<pw>>" -> "<<pw>>"\n'
        '        id       = "db-{upper:12}"\n    }',
        'variable "token" {\n  default = "<<vendor>>"\n}\n',
        'db_password = "<<pw!>>"\nregion      = "eu-north-1"\nsecret_key  = "<<alnum:40>>"',
        '"attributes": {\n  "master_password": "<<pw>>",\n  "arn": "arn:aws:rds:eu-north-1:{digits:12}:db"\n}',
    ),
    "CI": (
        "\x1b[36;1m$ npm publish\x1b[0;m\nnpm notice //registry.npmjs.org/:_authToken=<<vendor>>\nnpm ERR! 403",
        "##[debug]Evaluating: env.TOKEN\n##[debug]=> '<<vendor>>'\nRun actions/checkout@v4",
        "+ git clone https://oauth2:<<vendor>>@gitlab.example.org/{svc}.git\nCloning into '{svc}'...",
        "remote: https://<<vendor40>>@github.com/acme/{svc}.git (fetch)",
        "$ export SONAR_TOKEN=<<vendor>>\n$ sonar-scanner -Dsonar.login=<<vendor>>",
        "2026-05-01T10:22:31.1Z   with:\n2026-05-01T10:22:31.1Z     api-key: <<vendor>>",
        "Uploading distributions\n$ twine upload -u __token__ -p pypi-AgEIcHlwaS5vcmc<<word:150>> dist/*",
    ),
    "stack trace": (
        'Traceback (most recent call last):\n  File "app.py", line 12, in <module>\n'
        '    connect("postgres://{user}:<<pw>>@{host}/{svc}")\nOperationalError: timeout',
        "Error: Request failed with status code 401\n    config: {\n      headers: {\n"
        "        Authorization: 'Bearer <<vendor>>',\n        'User-Agent': 'axios/1.7'\n      }\n    }",
        "java.sql.SQLException: Access denied\n\tat com.example.Db.open(Db.java:31)\n"
        "Caused by: url=jdbc:mysql://{host}/{svc}?user={user}&password=<<letters:10>>&useSSL=false",
        "panic: bad token <<vendor>>\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:14 +0x1d",
        "thread 'main' panicked at src/main.rs:9:5:\ncalled `unwrap()`: Config { token: \"<<vendor>>\", retries: 3 }",
        "  locals = {'self': <Client>, 'api_key': '<<alnum:32>>', 'timeout': 30}",
    ),
    "settings": (
        "[default]\naws_access_key_id = AKIA{base32:0}<<base32:16>>\naws_secret_access_key = <<base64:40>>\n"
        "region = eu-north-1",
        "machine {host}\n  login {user}\n  password <<pw>>",
        "<settings>\n  <servers>\n    <server>\n      <id>{svc}</id>\n      <password><<pw>></password>\n"
        "    </server>\n  </servers>\n</settings>",
        '<connectionStrings>\n  <add name="db" connectionString="Server={host};Uid={user};Pwd=<<pw>>;"/>\n'
        "</connectionStrings>",
        "spring.datasource.username={user}\nspring.datasource.password=<<pw>>\nserver.port=8080",
        "DB_PASSWORD ?= <<pw>>\nIMAGE := {svc}:latest\nTOKEN := <<vendor>>",
        '{\n  "mcpServers": {\n    "{svc}": {\n      "command": "npx",\n      "args": ["-y", "server", '
        '"--access-token", "<<vendor>>"]\n    }\n  }\n}',
        "<?php\ndefine('DB_PASSWORD', '<<pw>>');\n$cfg['secret'] = '<<alnum:32>>';",
        'wifi:\n  ssid: home\n  psk: x\n  password: "<<pw!>>"',
    ),
    "shell": (
        "  101  cd {svc}\n  102  mysql -h {host} -u {user} -p<<pw>> shop\n  103  ls",
        "$ aws configure list\n      Name                    Value\naccess_key  AKIA{base32:0}<<base32:16>>",
        "$ cat ~/.ssh/id_rsa\n-----BEGIN {-}RSA PRIVATE KEY-----\n<<base64:64>>\n<<base64:64>>\n"
        "-----END {-}RSA PRIVATE KEY-----",
        "$ sshpass -p '<<pw!>>' ssh {user}@{host}\nLast login: Fri May  1",
        "$ gh auth token\n<<vendor>>\n$ git push\nEverything up-to-date",
        "$ echo $TOKEN\n<<vendor>>",
        "$ vault kv get secret/{svc}\n====== Data ======\nKey         Value\n---         -----\npassword    <<pw!>>\n",
        "PS C:\\> $env:API_KEY = \"<<vendor>>\"\nPS C:\\> Connect-Thing -Password '<<pw>>'",
        '$ psql "host={host} user={user} password=<<pw>> dbname={svc}"\npsql (16.2)',
        "$ openssl enc -aes-256-cbc -in a -pass pass:<<pw>>\n$ ls -l\ntotal 0",
    ),
    "other tools": (
        "helm get values {svc}\nUSER-SUPPLIED VALUES:\nauth:\n  rootPassword: <<pw>>\n  replicaCount: 2",
        "ansible-playbook -e 'db_pass=<<pw>>' site.yml\nPLAY [all] ***",
        "$ heroku config\n=== {svc} Config Vars\nDATABASE_URL:  postgres://u:<<pw>>@{host}:5432/d\nSECRET_KEY_BASE: <<hex:64>>",
        "$ rails credentials:show\nsecret_key_base: <<hex:128>>\naws:\n  secret_access_key: <<base64:40>>",
        "Set-Cookie: auth_token=<<alnum:40>>; Secure",
        "x-amz-security-token: <<base64:300>>",
        "ssh-add: enter passphrase: <<pw!>>",
        "redis-cli -h {host} -a <<pw>> ping\nPONG",
        "$ cat .pgpass\n{host}:5432:{svc}:{user}:<<pw>>",
        "htpasswd -b .htpasswd {user} <<pw>>",
        '"connectionString": "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=<<base64:43>>="',
        "wp-config.php: define( 'AUTH_KEY', '<<alnum:64>>' );",
        "LDAP bind: dn=cn=admin,dc=x password=<<pw!>>",
        'client = OpenAI(api_key="<<vendor>>", timeout=3)',
        "PGPASSWORD=<<pw>> pg_dump -h {host} {svc}",
        'mongosh "mongodb://{user}:<<pw>>@{host}:27017" --quiet',
        '{time} [debug] axios config={"auth":{"username":"{user}","password":"<<pw>>"}}',
        "smtp://{user}:<<pw>>@mail.{host}:587",
        '[remote "origin"]\n\turl = https://{user}:<<vendor>>@git.example.org/a.git',
        "Your new API token is:\n\n    <<vendor>>\n\nCopy it now.",
        "TWILIO_AUTH_TOKEN='<<hex:32>>' TWILIO_SID=AC{hex:32}",
        '\x1b[1mkey\x1b[0m: \x1b[32m"<<vendor>>"\x1b[39m,',
        '{"Credentials":{"AccessKeyId":"ASIA<<base32:16>>","SecretAccessKey":"<<base64:40>>","SessionToken":"<<base64:400>>"}}',
        "net use Z: \\\\{host}\\share /user:{user} <<pw!>>",
        "login: {user}\npassword: <<pw>>\nWelcome to Debian",
    ),
    "wrapped": (
        "The terminal was narrow, so the token came as\n    <<wrap>>\n    and the prompt went on.",
        "Bearer token for {svc}:\n<<wrap>>\n\nDo not share it.",
        'export TOKEN="<<wrap>>"\necho done',
    ),
}
_SLOT = re.compile(r"<<([a-z0-9]+!?(?::\d+)?)>>")


def outputs(templates: dict[str, tuple[str, ...]] = OUTPUTS) -> list[Output]:
    """Every kind of output, each filled several times."""
    chance = random.Random(SEED)
    made = []
    for tool, texts in templates.items():
        for text in texts:
            made += [_filled(tool, text, chance) for _ in range(EACH)]
    return made


def _filled(tool: str, template: str, chance: random.Random) -> Output:
    secrets: list[str] = []

    def secret(slot: re.Match[str]) -> str:
        secrets.append(_secret(slot[1], chance))
        return _wrapped(secrets[-1]) if slot[1] == "wrap" else secrets[-1]

    for name, values in PLACES.items():
        template = template.replace(f"{{{name}}}", chance.choice(values))
    text = fill(template.replace("{base32:0}", ""), chance)[0]
    return Output(tool, _SLOT.sub(secret, text), tuple(secrets))


def _secret(kind: str, chance: random.Random) -> str:
    if kind == "vendor40":
        return fill("ghp_{alnum:36}", chance)[0]
    if kind in {"vendor", "wrap"}:
        formats = [one for many in VENDORS.values() for one in many if "=" not in one]
        return fill(chance.choice([*formats, *_NEW_VENDORS]), chance)[0]
    if kind.startswith("pw"):
        symbols = chance.sample("!@#%^*", 2) if kind == "pw!" else ""
        letters = [*fill(f"{{alnum:{chance.randrange(8, 15)}}}", chance)[0], *symbols]
        chance.shuffle(letters)
        return f"x{''.join(letters)}7"
    return fill(f"{{{kind}}}", chance)[0]


def _wrapped(secret: str) -> str:
    middle = len(secret) * 2 // 3
    return f"{secret[:middle]}\n    {secret[middle:]}"
