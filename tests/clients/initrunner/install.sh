# InitRunner 1.2.0, the version whose databases `scrubjay memory import` reads. It needs an
# interpreter whose sqlite3 loads extensions, such as Debian's.
[ -x "$OTHER_HOME/bin/initrunner" ] && exit
/usr/bin/python3 -c 'import sqlite3; sqlite3.connect(":memory:").enable_load_extension(True)'
/usr/bin/python3 -m venv "$OTHER_HOME"
"$OTHER_HOME/bin/python" -m pip install --quiet initrunner==1.2.0 'pydantic-ai-slim[openai]<2' httpx
